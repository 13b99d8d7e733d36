package faults

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"ticketing/rpc"
)

// hold is a client in a process of its own. It takes the lock of the door and writes to a resource
// as long as its lock has not ended. What it does stands on its output, a line each; between
// looking at its lock and writing it waits for a line of its input, as if it were slow.
func hold() int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := rpc.Dial(ctx, strings.Split(os.Getenv("FAULTS_ADDRS"), ","),
		rpc.Options{Owner: "holder"})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer client.Close()
	lock, err := client.Lock(ctx, "door", lease)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	go exitAfter(ctx)
	fmt.Println("holds", lock.Token())
	for pace := bufio.NewScanner(os.Stdin); ; {
		select {
		case <-lock.Done():
			fmt.Println("over:", lock.Err())
			return 0
		default:
			fmt.Println("looked")
		}
		if !pace.Scan() {
			return 1
		}
		fmt.Println("writes", lock.Token())
	}
}

// exitAfter ends a process that nobody wants any more.
func exitAfter(ctx context.Context) {
	<-ctx.Done()
	os.Exit(1)
}

// holder is the other side of hold.
type holder struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	pace  *os.File
}

func (s *stage) holder() *holder {
	s.t.Helper()
	h := &holder{t: s.t, cmd: exec.Command(os.Args[0])}
	h.cmd.Env = append(os.Environ(), asEnv+"=holder", "FAULTS_ADDRS="+strings.Join(s.Addrs(), ","))
	output, err := h.cmd.StdoutPipe()
	s.must(err)
	stdin, pace, err := os.Pipe()
	s.must(err)
	h.lines, h.pace, h.cmd.Stdin = bufio.NewScanner(output), pace, stdin
	s.must(h.cmd.Start())
	s.must(stdin.Close())
	s.t.Cleanup(func() {
		_ = h.cmd.Process.Kill() // it may have ended
		_ = h.cmd.Wait()
		h.pace.Close()
	})
	return h
}

// next reads the next line.
func (h *holder) next() string {
	h.t.Helper()
	if !h.lines.Scan() {
		h.t.Fatal("the holder has ended without another word")
	}
	return h.lines.Text()
}

func (h *holder) says(want string) {
	h.t.Helper()
	if got := h.next(); got != want {
		h.t.Fatalf("the holder says %q, not %q", got, want)
	}
}

// goesOn lets it write, once it can.
func (h *holder) goesOn() {
	h.t.Helper()
	if _, err := h.pace.WriteString("\n"); err != nil {
		h.t.Fatal(err)
	}
}

// signal sends a signal, and waits until a process that is to stand still does.
func (h *holder) signal(sent syscall.Signal) {
	h.t.Helper()
	if err := h.cmd.Process.Signal(sent); err != nil {
		h.t.Fatal(err)
	}
	if sent == syscall.SIGSTOP && runtime.GOOS == "linux" {
		eventually(h.t, "the holder stands still", func() bool {
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.cmd.Process.Pid))
			return strings.Contains(string(stat), ") T ")
		})
	}
}
