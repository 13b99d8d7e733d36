// Command linearize judges what clients saw of a lock service, by the lock table's specification
// and nothing else: is there an order of their operations, each between its call and its return,
// in which every answer is right? A checker that shares no code with the servers does the search,
// so this is a module of its own: the library that has it is no part of the lock service.
//
//	linearize [-html FILE] [-limit TIME] FILE
//
// FILE has JSON lines, as package history writes them. Exit codes: 0 there is such an order, and
// the tokens rise over all keys; 1 there is none, or it was not found in time, which proves nothing
// either way; 2 wrong usage or a malformed file.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/anishathalye/porcupine"

	"ticketing/cmd/internal/history"
)

// Exit codes.
const (
	exitHeld   = 0
	exitBroken = 1
	exitUsage  = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

const usage = `linearize judges a history of locks, in a file of JSON lines.

  linearize [flags] FILE

`

func run(args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("linearize", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() { fmt.Fprint(stderr, usage); f.PrintDefaults() }
	picture := f.String("html", "", "draw the orders that were tried into `FILE`, if none is right")
	limit := f.Duration("limit", time.Minute, "how long to search, for `TIME`")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitHeld
	} else if err != nil {
		return exitUsage
	}
	if f.NArg() != 1 {
		f.Usage()
		return exitUsage
	}
	operations, err := read(f.Arg(0))
	if err != nil {
		fmt.Fprintln(stderr, "linearize:", err)
		return exitUsage
	}
	v, err := judge(operations, *limit, *picture)
	fmt.Fprintln(stdout, v)
	if err != nil {
		fmt.Fprintln(stderr, "linearize:", err)
		return exitBroken
	}
	return exitHeld
}

func read(name string) ([]history.Operation, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	operations, err := history.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(operations) == 0 {
		return nil, fmt.Errorf("%s has no operations, so there is nothing to judge", name)
	}
	return operations, nil
}

// verdict is what was judged.
type verdict struct{ granted, released, over, held, unknown, keys int }

func count(operations []history.Operation) verdict {
	var v verdict
	keys := map[string]bool{}
	for _, o := range operations {
		keys[o.Key] = true
		switch {
		case o.Outcome == history.Unknown:
			v.unknown++
		case o.Outcome == history.Held:
			v.held++
		case o.Outcome == history.NotHeld:
			v.over++
		case o.Granted():
			v.granted++
		default:
			v.released++
		}
	}
	v.keys = len(keys)
	return v
}

func (v verdict) String() string {
	return fmt.Sprintf("%d keys: %d locks granted, %d given back, %d over before that, "+
		"%d requests refused, %d of unknown outcome",
		v.keys, v.granted, v.released, v.over, v.held, v.unknown)
}

// judge returns an error if the history is not right. Then it draws the picture, if that is wanted.
func judge(all []history.Operation, limit time.Duration, picture string) (verdict, error) {
	err := errors.Join(history.CheckTokens(all), checkRefusals(all))
	model := lockTable()
	result, tried := porcupine.CheckOperationsVerbose(model, prepare(all), limit)
	switch {
	case result == porcupine.Ok:
		return count(all), err
	case result == porcupine.Unknown:
		err = errors.Join(err, fmt.Errorf("no order was found in %v: give -limit more", limit))
	default:
		err = errors.Join(err, errors.New("not linearizable: no order explains what clients saw"))
	}
	if picture != "" {
		if drawn := porcupine.VisualizePath(model, tried, picture); drawn != nil {
			return count(all), errors.Join(err, fmt.Errorf("drawing: %w", drawn))
		}
		err = fmt.Errorf("%w; the orders that were tried are drawn in %s", err, picture)
	}
	return count(all), err
}
