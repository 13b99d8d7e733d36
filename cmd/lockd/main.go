// Command lockd is a server of the lock service.
//
//	lockd -dev
//	lockd -id 1 -peers 1=127.0.0.1:7001,2=127.0.0.1:7002,3=127.0.0.1:7003 -dir DIR
//	lockd -id 4 -join 127.0.0.1:7001 -listen 127.0.0.1:7004 -dir DIR
//	lockd init -dir DIR -token-floor N
//	lockd certs -dir DIR
//	lockd wal dump DIR
//
// The first form runs three servers in this process, for trying things out, the second one server
// of a new cluster, the third one more of a cluster that runs. SIGINT and SIGTERM stop each: it says
// what has to be said, closes its log and exits with 0. A second signal ends it at once. The others
// say what a new cluster's tokens begin above, make certificates, and print a server's log.
// docs/operations.md tells how to run a cluster.
//
// It exits with 0 when it did what was asked, with 1 when it could not or a server has stopped by
// itself, and with 2 when it was called wrongly.
//
// Reading order: main.go, options.go (the command line), peers.go, server.go (one server),
// identity.go (which cluster it is of), join.go (one that comes later), web.go (metrics and health),
// trace.go, dev.go (three), certs.go and mint.go.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"ticketing/raft/wal"
)

func main() {
	os.Exit(run(untilSignal(), os.Args[1:], os.Stdout, os.Stderr))
}

// untilSignal returns a context that the first signal ends. The next has its usual effect.
func untilSignal() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}

// Exit codes. 0 is that it did what was asked.
const (
	exitFailed = 1
	exitUsage  = 2
)

// errUsage is wrapped by errors that another command line would mend.
var errUsage = errors.New("wrong usage")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := dispatch(ctx, args, stdout, stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(stderr, "lockd:", err)
	if errors.Is(err, errUsage) {
		return exitUsage
	}
	return exitFailed
}

func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "wal" {
		return runDump(args[1:], stdout)
	}
	if len(args) > 0 && args[0] == "init" {
		return runInit(args[1:], stdout)
	}
	if len(args) > 0 && args[0] == "certs" {
		return runCerts(args[1:], stdout)
	}
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	if o.dev {
		// Three servers share this terminal: only what is out of the ordinary is worth a line.
		level := new(slog.LevelVar)
		level.Set(slog.LevelWarn)
		log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
		return traced(o, log, func(o options) error { return runDev(ctx, o, log, level, stdout) })
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	run := runServer
	if o.peers == "" {
		run = runMember
	}
	return traced(o, log, func(o options) error { return run(ctx, o, log) })
}

// parseFlags parses a command line without arguments that are no flags. Asked for help, it prints
// what there is to say.
func parseFlags(f *flag.FlagSet, args []string, help string, stdout io.Writer) error {
	f.SetOutput(io.Discard) // it would print all flags after each error
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, help)
		return err
	case err != nil:
		return fmt.Errorf("%w: %w; see %s -h", errUsage, err, f.Name())
	case f.NArg() > 0:
		return fmt.Errorf("%w: unexpected argument %q; see %s -h", errUsage, f.Arg(0), f.Name())
	}
	return nil
}

const dumpHelp = `lockd wal dump DIR prints the log in a server's directory as a table, a line
for each header, record and entry, and last what a server would make of it. It
changes nothing, takes no lock and works while the server runs; what that is
writing at this moment looks torn.

A mark is a record that changes nothing and vouches for what is before it. A
marker says that the log begins behind a snapshot; the snapshots' files come
last.
It exits with 1 if the directory cannot be read.
`

// runDump prints a log.
func runDump(args []string, stdout io.Writer) error {
	if len(args) == 0 || args[0] == "-h" || args[0] == "-help" || args[0] == "--help" {
		fmt.Fprint(stdout, dumpHelp)
		if len(args) == 0 {
			return fmt.Errorf("%w: what of the log? lockd wal dump DIR prints it", errUsage)
		}
		return nil
	}
	if args[0] != "dump" {
		return fmt.Errorf("%w: there is no lockd wal %s; there is lockd wal dump DIR",
			errUsage, args[0])
	}
	f := flag.NewFlagSet("lockd wal dump", flag.ContinueOnError)
	dir := ""
	if rest := args[1:]; len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		dir, args = rest[0], rest // the flags, which are none, begin behind it
	}
	if err := parseFlags(f, args[1:], dumpHelp, stdout); err != nil {
		return err
	}
	if dir == "" {
		return fmt.Errorf("%w: which directory? It is that of the server's -dir", errUsage)
	}
	out := bufio.NewWriter(stdout)
	return errors.Join(wal.Dump(dir, out), out.Flush())
}
