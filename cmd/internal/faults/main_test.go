package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ticketing/cmd/internal/cluster"
)

// Variables of the environment. The first two are for whoever runs the tests, the others for this
// program when it runs itself.
const (
	longEnv    = "TICKETING_LONG"
	historyEnv = "TICKETING_HISTORY"
	binaryEnv  = "FAULTS_LOCKD"
	asEnv      = "FAULTS_AS"
	aloneEnv   = "FAULTS_ALONE"
)

// long says whether there is time.
func long() bool { return os.Getenv(longEnv) == "1" }

// lasting is how long something goes on.
func lasting(short, whole time.Duration) time.Duration {
	if long() {
		return whole
	}
	return short
}

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asEnv) == "holder":
		os.Exit(hold())
	case os.Getenv(binaryEnv) != "":
		os.Exit(m.Run())
	}
	code, err := runAll(m)
	if err != nil {
		fmt.Println(err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// runAll runs the tests in one directory, with one server program, and looks at what they leave.
func runAll(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	binary, err := cluster.BuildBinary(dir, "./cmd/lockd", "")
	if err != nil {
		return 0, err
	}
	for name, value := range map[string]string{binaryEnv: binary, "TMPDIR": dir} {
		if err := os.Setenv(name, value); err != nil {
			return 0, err
		}
	}
	code = m.Run()
	var left []string
	for range 50 { // what was killed takes a moment to vanish
		if left = leftovers(dir); len(left) == 0 {
			return code, nil
		}
		<-time.After(100 * time.Millisecond)
	}
	return code, fmt.Errorf("left over on this machine:\n%s", strings.Join(left, "\n"))
}

// leftovers lists processes, mounts and loop devices that have to do with a directory, and network
// interfaces with our names.
func leftovers(dir string) []string {
	var left []string
	look := func(pattern, want string) {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // it has gone meanwhile
			}
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, want) && !strings.Contains(file, "/self/") &&
					!strings.Contains(file, fmt.Sprintf("/%d/", os.Getpid())) {
					left = append(left, file+": "+strings.ReplaceAll(line, "\x00", " "))
				}
			}
		}
	}
	look("/proc/[0-9]*/cmdline", dir)
	look("/proc/[0-9]*/mounts", dir)
	look("/sys/block/loop*/loop/backing_file", dir)
	look("/sys/class/net/*/ifalias", networkLabel)
	return left
}

// networkLabel marks our network interfaces.
const networkLabel = "ticketing-faults"
