package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"ticketing/raft"
	"ticketing/rpc"
)

// The -dev cluster's.
const defaultAddrs = "127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003"

const usage = `lockctl takes and gives back locks of a lock service.

  lockctl lock KEY -- COMMAND ARGS…       run a command under a lock
  lockctl acquire KEY                     hold a lock until a signal comes
  lockctl extend KEY -token N             give a lock that is held a new lease
  lockctl release KEY -token N | -force   end a lock that is held
  lockctl get KEY                         who holds it
  lockctl list                            all locks that are held
  lockctl status                          how each server is
  lockctl member list | add | promote | remove   which servers there are
  lockctl transfer [-to ID]               let another server lead
  lockctl snapshot                        shorten each server's log now

Flags stand before or behind the KEY.
  -lease D             lock, acquire, extend: the lock ends after this (10s)
  -keep                lock, acquire: and is extended before, again and again
  -try, -wait D        lock, acquire: do not wait, or no longer than this
  -addrs HOST:PORT,…   servers; some suffice (LOCKCTL_ADDRS, else lockd -dev's)
  -at HOST:PORT        ask this server alone, whether it leads or not
  -local               get, list: what one server has itself; it may be stale
  -timeout D           how long to look for a server and wait for it (5s)
  -json                print JSON, with tokens as strings
  -tls-cert FILE -tls-key FILE -tls-ca FILE   speak TLS
lockctl lock -h, and so on, tells the rest.

Exit codes:
    0  it is done                          70  the lock was lost: its lease ran
    1  it is not, or not held                  out while it was needed
    2  the command line is wrong           75  the lock was not acquired
lock exits as its command does, with 128+N if signal N has ended that, and with
126 or 127 if it cannot be started or is not there.
`

var errUsage = errors.New("wrong usage")

// command is a command line.
type command struct {
	key  string
	argv []string // what follows --
	help string   // what to print for -h

	addrs, at, owner          string
	certFile, keyFile, caFile string // for TLS
	lease, wait, timeout      time.Duration
	token, to                 uint64
	conflict                  int
	try, keep, force          bool
	local, json               bool

	verb    string // member's, and what it is about
	id      raft.ServerID
	address string

	stdin, stdout, stderr *os.File
}

// subcommand is what lockctl can do.
type subcommand struct {
	name, form, about string
	holds             bool // it takes a lock, and keeps it for longer than -timeout
	flags             func(*command, *flag.FlagSet)
	run               func(*command, context.Context, *rpc.Client) (int, error)
}

func subcommands() []subcommand {
	return []subcommand{{
		name: "lock", form: "KEY [FLAGS] -- COMMAND ARGS…", holds: true,
		flags: holdFlags, run: (*command).lock,
		about: `lock waits for a lock and runs a command while it holds it. The command
finds LOCK_KEY, LOCK_TOKEN and LOCK_LEASE_MS in its environment. What the lock
protects should refuse a token that is smaller than one it has seen.

The command must be done within the lease, unless -keep extends that. When a
fifth of it is left, at most 10s, its process group gets SIGTERM, and SIGKILL
when the lease is over;
lockctl then exits with 70. It passes INT, TERM, HUP and QUIT on to the group;
one that comes before the command was started means that it never is. The
command can read from the terminal. Ctrl-Z does nothing: the lease runs on.`,
	}, {
		name: "acquire", form: "KEY [FLAGS]", holds: true,
		flags: holdFlags, run: (*command).acquire,
		about: `acquire waits for a lock, prints its token, and holds it until it gets INT,
TERM, HUP or QUIT. Then it gives the lock back and exits with 0. It exits with
70 when the lease is over before.`,
	}, {
		name: "extend", form: "KEY -token N [FLAGS]",
		flags: func(c *command, f *flag.FlagSet) {
			f.Uint64Var(&c.token, "token", 0, "extend the lock with this `token`, and no other")
			leaseFlag(c, f)
		},
		run: (*command).extend,
		about: `extend gives a lock a new lease, counted from now on, and prints it. That may be
less than what is left of the old one. It never takes a lock: it exits with 1 if
the lock is over, or about to be, or nobody could be asked. It is for a program
that has the token and counts by itself: a lockctl that holds the lock hears
nothing of it, and counts on as before. There, -keep does it.`,
	}, {
		name: "release", form: "KEY -token N | -force",
		flags: func(c *command, f *flag.FlagSet) {
			f.Uint64Var(&c.token, "token", 0, "release the lock with this `token`, and no other")
			f.BoolVar(&c.force, "force", false, "release it whoever holds it, and say who that was")
		},
		run: (*command).release,
		about: `release ends a lock. With -force it may be the lock of somebody who works under
it at this moment. Only the token, looked at where the work is done, keeps two
apart then.`,
	}, {
		name: "get", form: "KEY", flags: localFlag, run: (*command).get,
		about: `get tells who holds a key, and exits with 1 if nobody does. Whichever server
answers has made sure that nobody knew better when it was asked. With -local a
server tells what it has itself, which may be stale.`,
	}, {
		name: "list", flags: localFlag, run: (*command).list,
		about: `list shows all locks that are held. Whichever server answers has made sure that
nobody knew better when it was asked. With -local a server tells what it has
itself, which may be stale.`,
	}, {
		name: "transfer", form: "[-to ID]", run: (*command).transfer,
		flags: func(c *command, f *flag.FlagSet) {
			f.Uint64Var(&c.to, "to", 0, "the `ID` of the server that is to lead; any if it is left out")
		},
		about: `transfer makes the leader hand its place to another server, and prints who leads
then. Waiting clients go there by themselves, and locks stay held. If the other
server does not take over within an election timeout the leader goes on; then
it exits with 1. A lockd that is stopped by a signal does this by itself.`,
	}, {
		name: "status", run: (*command).status,
		about: `status asks each server how it is, and what is left of each lease by its own
count. It exits with 1 if one does not answer, or if two that have applied the
same log have different tables, which must never be.`,
	}, {
		name: "member", form: "list | add ID ADDRESS | promote ID | remove ID [FLAGS]",
		run: (*command).member, about: memberAbout,
	}, {
		name: "snapshot", run: (*command).snapshot,
		about: `snapshot makes each server take a snapshot of its table, or only the one at
-at. It waits until they are on the disks, and tells up to which entries they
go. Of the log before that 100,000 entries stay, for servers that are behind.
Servers do so by themselves, see lockd -snapshot-every; this is for before an
upgrade, or when a disk fills up. It exits with 1 if a server does not answer
or is not done within -timeout.`,
	}}
}

func holdFlags(c *command, f *flag.FlagSet) {
	leaseFlag(c, f)
	f.DurationVar(&c.wait, "wait", 0, "wait for this `time` at most, not for ever")
	f.BoolVar(&c.try, "try", false, "do not wait if somebody holds it")
	f.BoolVar(&c.keep, "keep", false, "extend the lease again and again while it is needed")
	f.StringVar(&c.owner, "owner", "", "a `label` that others see")
	f.IntVar(&c.conflict, "conflict-code", exitNotAcquired,
		"exit with this `code` when the lock is not acquired")
}

func leaseFlag(c *command, f *flag.FlagSet) {
	f.DurationVar(&c.lease, "lease", 10*time.Second, "the lock ends by itself after this `time`")
}

func localFlag(c *command, f *flag.FlagSet) {
	f.BoolVar(&c.local, "local", false, "what one server has itself: the one at -at, or any")
}

func commonFlags(c *command, f *flag.FlagSet) {
	c.addrs = defaultAddrs
	if env := os.Getenv("LOCKCTL_ADDRS"); env != "" {
		c.addrs = env
	}
	f.StringVar(&c.addrs, "addrs", c.addrs, "`HOST:PORT`,… of servers; some suffice")
	f.StringVar(&c.at, "at", "", "ask the server at `HOST:PORT` alone")
	f.DurationVar(&c.timeout, "timeout", 5*time.Second,
		"the `time` to find a server and get its answer")
	f.BoolVar(&c.json, "json", false, "print JSON, with tokens as strings")
	f.StringVar(&c.certFile, "tls-cert", "", "the `file` of this client's certificate")
	f.StringVar(&c.keyFile, "tls-key", "", "the `file` of its private key")
	f.StringVar(&c.caFile, "tls-ca", "", "the `file` of the CA that signs the servers' certificates")
}

// parse reads a command line.
func (c *command) parse(args []string) (subcommand, error) {
	if len(args) == 0 {
		return subcommand{}, fmt.Errorf("%w: no subcommand; see lockctl -h", errUsage)
	}
	switch args[0] {
	case "-h", "-help", "--help", "help":
		c.help = usage
		return subcommand{}, flag.ErrHelp
	}
	all := subcommands()
	i := slices.IndexFunc(all, func(s subcommand) bool { return s.name == args[0] })
	if i < 0 {
		return subcommand{}, fmt.Errorf("%w: no subcommand is called %q; see lockctl -h",
			errUsage, args[0])
	}
	sub := all[i]
	f := flag.NewFlagSet(sub.name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	if sub.flags != nil {
		sub.flags(c, f)
	}
	commonFlags(c, f)
	c.help = sub.help(f)
	err := c.parseRest(sub, f, args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return sub, flag.ErrHelp
	}
	if err != nil {
		return sub, fmt.Errorf("%w: %w; see lockctl %s -h", errUsage, err, sub.name)
	}
	return sub, nil
}

// parseRest reads what stands behind the subcommand. Flags may stand before and behind the key.
func (c *command) parseRest(sub subcommand, f *flag.FlagSet, args []string) error {
	if i := slices.Index(args, "--"); i >= 0 {
		args, c.argv = args[:i], args[i+1:]
	}
	var words []string
	for len(args) > 0 {
		if err := f.Parse(args); err != nil {
			return err
		}
		if args = f.Args(); len(args) > 0 {
			words, args = append(words, args[0]), args[1:]
		}
	}
	if sub.name == "member" {
		if err := c.parseMember(words); err != nil {
			return err
		}
		return c.check(sub, nil)
	}
	keys := 0
	if strings.HasPrefix(sub.form, "KEY") {
		keys = 1
	}
	if len(words) != keys {
		return fmt.Errorf("%s takes %d key, not %q", sub.name, keys, words)
	}
	if keys == 1 {
		c.key = words[0]
	}
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return c.check(sub, given)
}

// check finds what does not go together.
func (c *command) check(sub subcommand, given map[string]bool) error {
	waits := given["wait"]
	switch {
	case given["to"] && c.to == 0:
		return errors.New("-to 0 is no server's id, which is a number from 1; leave -to out for any server")
	case sub.name == "lock" && len(c.argv) == 0:
		return errors.New("lock needs -- and a command; to hold a lock without one, use acquire")
	case sub.name != "lock" && len(c.argv) > 0:
		return errors.New("only lock takes a command")
	case sub.name == "extend" && c.token == 0:
		return errors.New("extend needs the -token that acquire has printed")
	case sub.name == "release" && (c.token == 0) != c.force:
		return errors.New("release needs either the -token that acquire has printed or -force")
	case c.try && waits:
		return errors.New("-try and -wait exclude each other")
	case waits && c.wait <= 0:
		return errors.New("-wait must be more than 0; not to wait is -try")
	case c.timeout <= 0:
		return errors.New("-timeout must be more than 0")
	case c.conflict < 0 || c.conflict > 255:
		return errors.New("-conflict-code must be from 0 to 255")
	case (c.certFile == "") != (c.keyFile == "") || (c.certFile == "") != (c.caFile == ""):
		return errors.New("-tls-cert, -tls-key and -tls-ca go together")
	}
	return nil
}

// help describes a subcommand and its flags, a line each.
func (s subcommand) help(f *flag.FlagSet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "lockctl %s %s\n\n%s\n\n", s.name, s.form, s.about)
	f.VisitAll(func(f *flag.Flag) {
		name, about := flag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" &&
			f.Name != "addrs" {
			about += " (" + f.DefValue + ")"
		}
		fmt.Fprintf(&b, "  %-21s %s\n", "-"+f.Name+" "+name, about)
	})
	return b.String()
}
