// Command lockctl takes and gives back locks of a lock service.
//
//	lockctl lock backup -- tar -cf /backup.tar /home
//
// runs a command while it holds a lock. Other subcommands take and release locks by themselves and
// show what is held, see lockctl -h.
//
// It exits with 0 when all went well, 1 when it did not, 2 when it was called wrongly, and 75 when
// the lock was not acquired. The subcommand lock exits with the code of the command that it ran.
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
	"time"

	"ticketing/fsm"
	"ticketing/rpc"
)

// Exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitNotAcquired = 75 // as sysexits.h has it: try again later
)

// The -dev cluster's.
const defaultAddrs = "127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003"

const usage = `lockctl takes and gives back locks.

  lockctl acquire KEY [-lease D] [-try | -wait D]    print a token; the lease ends the lock
  lockctl release KEY -token N
  lockctl lock KEY [-lease D] [-try | -wait D] -- COMMAND ARGS…
                                                     run a command while the lock is held
  lockctl get KEY                                    who holds it
  lockctl list                                       all locks that are held
  lockctl status                                     how each server is

  -addrs HOST:PORT,…   servers, some suffice (LOCKCTL_ADDRS; else those of lockd -dev)
  -owner NAME          a label that others see (acquire, lock)
  -timeout D           how long to look for a leader and wait for its answer (10s)
  -json                print JSON, with tokens as strings

COMMAND finds LOCK_KEY, LOCK_TOKEN and LOCK_LEASE_MS in its environment. It must be done within the
lease: it is sent SIGTERM when a fifth of that is left, at most 10s before the end, then SIGKILL.
`

var errUsage = errors.New("wrong usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command is a command line.
type command struct {
	name, key string
	argv      []string // what follows --

	addrs, owner         string
	lease, wait, timeout time.Duration
	token                uint64
	try, json            bool

	stdout, stderr io.Writer
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c := command{stdout: stdout, stderr: stderr}
	err := c.parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stderr, usage)
		return 0
	}
	code := 0
	if err == nil {
		code, err = c.connect(ctx)
	}
	if err == nil {
		return code
	}
	fmt.Fprintln(stderr, "lockctl:", err)
	switch {
	case errors.Is(err, errUsage):
		return exitUsage
	case code != 0:
		return code
	}
	return exitFailed
}

// parse reads a command line. Flags may stand before and behind the key.
func (c *command) parse(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: no subcommand; see lockctl -h", errUsage)
	}
	c.name = args[0]
	f := flag.NewFlagSet("lockctl "+c.name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	c.addrs = defaultAddrs
	if env := os.Getenv("LOCKCTL_ADDRS"); env != "" {
		c.addrs = env
	}
	f.StringVar(&c.addrs, "addrs", c.addrs, "")
	f.DurationVar(&c.timeout, "timeout", 10*time.Second, "")
	f.BoolVar(&c.json, "json", false, "")
	switch c.name {
	case "acquire", "lock":
		f.StringVar(&c.owner, "owner", "", "")
		f.DurationVar(&c.lease, "lease", 10*time.Second, "")
		f.DurationVar(&c.wait, "wait", 0, "")
		f.BoolVar(&c.try, "try", false, "")
	case "release":
		f.Uint64Var(&c.token, "token", 0, "")
	case "get", "list", "status":
	case "-h", "-help", "--help", "help":
		return flag.ErrHelp
	default:
		return fmt.Errorf("%w: unknown subcommand %q; see lockctl -h", errUsage, c.name)
	}
	return c.parseRest(f, args[1:])
}

func (c *command) parseRest(f *flag.FlagSet, args []string) error {
	for i, arg := range args {
		if arg == "--" {
			args, c.argv = args[:i], args[i+1:]
			break
		}
	}
	var words []string
	for len(args) > 0 {
		if err := f.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return err
			}
			return fmt.Errorf("%w: %w; see lockctl -h", errUsage, err)
		}
		if args = f.Args(); len(args) > 0 {
			words, args = append(words, args[0]), args[1:]
		}
	}
	keys := 1
	if c.name == "list" || c.name == "status" {
		keys = 0
	}
	switch {
	case len(words) != keys:
		return fmt.Errorf("%w: %s takes %d key, not %q; see lockctl -h",
			errUsage, c.name, keys, words)
	case (c.name == "lock") != (len(c.argv) > 0):
		return fmt.Errorf("%w: lock, and nothing else, is followed by -- and a command", errUsage)
	case c.name == "release" && c.token == 0:
		return fmt.Errorf("%w: release needs the -token that acquire has printed", errUsage)
	case c.try && c.wait != 0:
		return fmt.Errorf("%w: -try and -wait exclude each other", errUsage)
	}
	if keys == 1 {
		c.key = words[0]
	}
	return nil
}

// connect runs the subcommand with a client. With an error it returns the exit code that fits, or
// 0.
func (c *command) connect(ctx context.Context) (int, error) {
	addrs := strings.Split(c.addrs, ",")
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	k, err := rpc.Dial(limited, addrs, rpc.Options{Owner: c.owner})
	if err != nil {
		if c.name == "lock" || c.name == "acquire" {
			return exitNotAcquired, err
		}
		return 0, err
	}
	defer k.Close()
	switch c.name {
	case "acquire":
		l, err := c.acquire(ctx, k)
		if err != nil {
			return exitNotAcquired, err
		}
		return 0, c.print(lockJSON(l.Key(), l.Token(), c.owner, c.lease), fmt.Sprint(l.Token()))
	case "lock":
		return c.lock(ctx, k)
	case "release":
		if err := k.Release(limited, c.key, fsm.Token(c.token)); err != nil {
			return 0, err
		}
		return 0, c.print(map[string]any{"released": c.key}, "released")
	case "get":
		return c.get(limited, k)
	case "list":
		return 0, c.list(limited, k)
	}
	return 0, c.status(limited, k, addrs)
}

// acquire takes the lock. Without -try and -wait it waits for as long as it takes.
func (c *command) acquire(ctx context.Context, k *rpc.Client) (*rpc.Lock, error) {
	if c.try {
		ctx, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		return k.TryLock(ctx, c.key, c.lease)
	}
	if c.wait != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.wait)
		defer cancel()
	}
	return k.Lock(ctx, c.key, c.lease)
}

func (c *command) print(value any, text string) error {
	if c.json {
		return json.NewEncoder(c.stdout).Encode(value)
	}
	_, err := fmt.Fprintln(c.stdout, text)
	return err
}
