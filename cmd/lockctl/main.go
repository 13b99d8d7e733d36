// Command lockctl takes and gives back locks of a lock service.
//
//	lockctl lock backup -- tar -cf /backup.tar /home
//
// runs a command while it holds a lock. Other subcommands hold a lock by themselves, release one
// and show what is held; see lockctl -h, which also lists the exit codes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"ticketing/rpc"
)

// Exit codes. The subcommand lock has its command's otherwise.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitLost        = 70  // a lock that has ended too early
	exitNotAcquired = 75  // as sysexits.h has it: try again later
	exitCannotRun   = 126 // this and the rest as a shell has them
	exitNotFound    = 127
	exitSignalled   = 128 // and the signal's number
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), heeded()...)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// heeded returns the signals that end lockctl, or are for the command that it runs. nohup sets
// SIGHUP to be ignored, and that is how it stays then. (A shell script does the same to SIGINT for
// what it starts in the background; there it is wanted all the same.)
func heeded() []os.Signal {
	all := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// exitError is an error with the exit code that it leads to.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// run runs a command line. Standard output and input are files, as they are handed to a command.
func run(ctx context.Context, args []string, stdin, stdout, stderr *os.File) int {
	c := command{stdin: stdin, stdout: stdout, stderr: stderr}
	sub, err := c.parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, c.help)
		return 0
	}
	code := 0
	if err == nil {
		code, err = c.connect(ctx, sub)
	}
	if err == nil {
		return code
	}
	fmt.Fprintln(stderr, "lockctl:", err)
	var exit *exitError
	switch {
	case errors.Is(err, errUsage), errors.Is(err, rpc.ErrInvalid):
		return exitUsage
	case errors.As(err, &exit):
		return exit.code
	}
	return exitFailed
}

// connect runs a subcommand with a client.
func (c *command) connect(ctx context.Context, sub subcommand) (int, error) {
	options := rpc.Options{Owner: c.owner, NoHints: c.at != ""}
	if c.certFile != "" {
		var err error
		if options.TLS, err = rpc.LoadTLS(c.certFile, c.keyFile, c.caFile); err != nil {
			return 0, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	unreached := exitFailed
	if sub.holds {
		unreached = c.conflict
	}
	servers := strings.Split(c.servers(), ",")
	k, err := rpc.Dial(limited, servers, options)
	switch {
	case err == nil:
	case !errors.Is(err, rpc.ErrNoLeader): // an address that is none
		return 0, fmt.Errorf("%w: -addrs or -at: %w", errUsage, err)
	case ctx.Err() != nil:
		return 0, &exitError{unreached, errors.New("a signal came before a server was reached")}
	default:
		return 0, &exitError{unreached, fmt.Errorf("no server can be reached at %s; "+
			"is one running (lockd -dev starts three), and do -addrs or LOCKCTL_ADDRS name it? %w",
			strings.Join(servers, " or "), err)}
	}
	defer k.Close()
	if !sub.holds { // otherwise it limits its steps by itself
		ctx = limited
	}
	code, err := sub.run(c, ctx, k)
	return code, c.advised(err)
}

// servers returns the addresses to ask.
func (c *command) servers() string {
	if c.at != "" {
		return c.at
	}
	return c.addrs
}

// print writes a line of JSON, or what the function writes for people.
func (c *command) print(value any, text func(io.Writer) error) error {
	if c.json {
		return json.NewEncoder(c.stdout).Encode(value)
	}
	return text(c.stdout)
}
