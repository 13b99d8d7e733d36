package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ticketing/sim"
)

// mostLoops is how many scenarios may loop before those of later chapters are left out: each costs
// seconds, and what a chapter lacks makes the later ones fail as well.
const mostLoops = 3

// grading is what grade was asked for.
type grading struct {
	look
	shared searchFlags
	seeds  string
	jobs   int
	asJSON bool
}

// graded is what came of a chapter.
type graded struct {
	chapter
	rows []gradedRow // none if it was left out
}

type gradedRow struct {
	name    string
	outcome *outcome
	crash   *crash
}

func (r *gradedRow) held() bool { return r.crash == nil && r.outcome.held() }

func (g *graded) holding() (n int) {
	for i := range g.rows {
		if g.rows[i].held() {
			n++
		}
	}
	return n
}

func (g *graded) held() bool { return len(g.rows) > 0 && g.holding() == len(g.rows) }

// grade is an exercise's judge: scenarios, chapter by chapter, and then a search.
func grade(ctx context.Context, c *call) error {
	g := &grading{}
	err := c.parse("grade", "-raft DIR [flags]", func(f *flag.FlagSet) {
		g.look.define(f)
		g.shared.define(f)
		f.StringVar(&g.seeds, "seeds", "1-300", "search the seeds `A-B` besides")
		f.IntVar(&g.jobs, "j", 0, "how many runs at a time; 0 is one a core")
		f.BoolVar(&g.asJSON, "json", false, "print the table as one JSON object")
	})
	if err != nil {
		return err
	}
	switch {
	case c.flags.NArg() != 0:
		return misuse("grade takes flags only, not %q; your files are in -raft DIR", c.flags.Arg(0))
	case g.shared.own.dir == "":
		return misuse("grade judges a package raft of yours: say where it is with -raft DIR; docs/your-own-raft.md says what it must have")
	case g.jobs < 0:
		return misuse("-j must not be negative")
	}
	s := &ownSearch{shared: &g.shared, bounds: usualBounds(), jobs: sim.Workers(g.jobs)}
	if s.Search, err = g.shared.search(); err != nil {
		return err
	}
	if s.From, s.To, err = seedRange(g.seeds, 0); err != nil {
		return err
	}
	if s.b, err = g.shared.own.build(ctx); err != nil {
		return err
	}
	defer s.b.remove()
	fmt.Fprintf(c.err, "package raft: %s\n", s.b.parts)
	return g.judge(ctx, c, s)
}

// judge does all, and tells it.
func (g *grading) judge(ctx context.Context, c *call, s *ownSearch) error {
	var all []graded
	for _, ch := range chapters() {
		rows, err := g.runChapter(ctx, s, ch, all)
		if err != nil {
			return err
		}
		all = append(all, graded{ch, rows})
		if !g.asJSON {
			g.printChapter(c, len(all), &all[len(all)-1])
		}
	}
	meter := newMeter(c, s.Search)
	s.Progress = meter.tick
	begun := time.Now()
	f, err := s.explore(ctx)
	meter.clear()
	if err != nil {
		return err
	}
	c.cut = ctx.Err() != nil
	c.broken = !allHeld(all) || !f.held()
	if g.asJSON {
		return c.printAsJSON(g.report(all, f))
	}
	g.printSearch(c, f, time.Since(begun))
	g.printEnd(c, all, f)
	return nil
}

func (f *ownFindings) held() bool { return f.failed == nil && len(f.crashes) == 0 && f.Seeds > 0 }

func allHeld(all []graded) bool {
	return !slices.ContainsFunc(all, func(g graded) bool { return !g.held() })
}

// runChapter runs a chapter's scenarios, unless too many before have looped.
func (g *grading) runChapter(ctx context.Context, s *ownSearch, ch chapter, before []graded) ([]gradedRow, error) {
	loops := 0
	for _, b := range before {
		for _, r := range b.rows {
			if r.crash != nil && r.crash.kind == crashLoop {
				loops++
			}
		}
	}
	if loops >= mostLoops {
		return nil, nil
	}
	rows := make([]gradedRow, len(ch.scenarios))
	var next atomic.Int64
	crew, ctx := errgroup.WithContext(ctx)
	for range s.jobs {
		crew.Go(func() error {
			h := &hand{b: s.b, bounds: s.bounds}
			defer h.end()
			for i := next.Add(1) - 1; i < int64(len(rows)); i = next.Add(1) - 1 {
				name := ch.scenarios[i]
				j := job{Scenario: name, Without: s.Without, Again: g.again(name)}
				o, crashed, err := h.run(ctx, j)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				rows[i] = gradedRow{name, o, crashed}
			}
			return nil
		})
	}
	return rows, crew.Wait()
}

// again is the command that shows a scenario as it was graded.
func (g *grading) again(name string) string {
	words := "raftsim run"
	if g.shared.without != "" {
		words += " -without " + g.shared.without
	}
	return words + g.shared.own.words() + " " + name
}
