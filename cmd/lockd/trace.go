package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"ticketing/fsm/trace"
)

// traced runs servers and meanwhile writes down what they do, if -trace says where.
func traced(o options, log *slog.Logger, servers func(options) error) error {
	if o.trace == "" {
		return servers(o)
	}
	file, err := os.Create(o.trace)
	if err != nil {
		return fmt.Errorf("%w: -trace: %w", errUsage, err)
	}
	o.recorder = trace.NewRecorder(file, func(err error) {
		log.Error("the servers go on without a trace", "file", o.trace, "err", err)
	})
	err = servers(o)
	return errors.Join(err, o.recorder.Close(), file.Close())
}
