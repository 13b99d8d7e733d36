package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"ticketing/fsm/trace"
)

// traced runs servers and meanwhile writes down what they do, if -trace says where.
func traced(o options, log *slog.Logger, servers func(options) error) error {
	if o.trace == "" {
		return servers(o)
	}
	// What is there may be what a running server writes, or what one wrote before it was killed.
	file, err := os.OpenFile(o.trace, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: -trace: %s is there already; move it away, or choose another name",
			errUsage, o.trace)
	}
	if err != nil {
		return fmt.Errorf("%w: -trace: %w", errUsage, err)
	}
	o.recorder = trace.NewRecorder(file, func(err error) {
		log.Error("the servers go on without a trace", "file", o.trace, "err", err)
	})
	err = servers(o)
	return errors.Join(err, o.recorder.Close(), file.Close())
}
