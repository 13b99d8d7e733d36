package sim

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// Workers is how many things are done at a time when jobs are asked for: with 0, one for each core.
func Workers(jobs int) int {
	if jobs <= 0 {
		return runtime.GOMAXPROCS(0)
	}
	return jobs
}

// sideBySide does n things, jobs at a time, and returns what came of them, in their order. At the
// first error, or when the context ends, no more are begun.
func sideBySide[T any](
	ctx context.Context, jobs, n int, one func(ctx context.Context, i int) (T, error),
) ([]T, error) {
	results := make([]T, n)
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(Workers(jobs))
	for i := range results {
		if running.Err() != nil {
			break
		}
		group.Go(func() (err error) {
			results[i], err = one(running, i)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return results, ctx.Err()
}
