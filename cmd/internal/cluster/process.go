package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// process is one life of a server.
type process struct {
	group int
	stdin io.WriteCloser
	from  int           // where its log starts in the file
	done  chan struct{} // closed when it has ended
	err   error         // how; valid once done is closed

	mu       sync.Mutex
	expected bool // it is to end
	known    bool // and with what exit code is of no interest
}

func startProcess(words []string, logFile string) (*process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	size, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, attr()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p := &process{stdin: stdin, from: int(size), done: make(chan struct{})}
	started := make(chan error)
	go p.run(cmd, started)
	if err := <-started; err != nil {
		return nil, err
	}
	p.group = cmd.Process.Pid
	return p, nil
}

// run stays on one thread while the process lives: a process that is to die with its parent dies
// with the thread that has started it.
func (p *process) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = cmd.Wait()
	close(p.done)
}

// signal sends a signal to the process group. One that has ended is no error.
func (p *process) signal(s syscall.Signal) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := syscall.Kill(-p.group, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %s: %w", s, err)
	}
	return nil
}

// kill ends the process group, whatever it does.
func (p *process) kill() error {
	p.expect(true)
	return p.signal(syscall.SIGKILL)
}

// expect notes that the process is to end, and whether the exit code is of no interest.
func (p *process) expect(known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = true
	p.known = p.known || known
}

func (p *process) isExpected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.expected
}

func (p *process) isKnown() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known
}
