package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// BuildBinary builds a package of this module, named as from its root ("./cmd/lockd"), and returns
// the program's path, which is in dir. An overlay, as go build takes it, has the program built from
// a changed source without touching the source; "" is none.
func BuildBinary(dir, pkg, overlay string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	// The tool runs elsewhere: what is relative here would be something else there.
	binary, err := filepath.Abs(filepath.Join(dir, filepath.Base(pkg)))
	if err != nil {
		return "", err
	}
	args := []string{"build", "-o", binary}
	if overlay != "" {
		overlay, err = filepath.Abs(overlay)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	build := exec.Command("go", append(args, pkg)...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// moduleRoot returns the directory of the go.mod that holds here.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("asking go for the module: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", fmt.Errorf("no go.mod holds here: run this inside the module")
	}
	return filepath.Dir(mod), nil
}
