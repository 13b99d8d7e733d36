package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// A reporter says how it is doing. *rpc.Node is one.
type reporter interface {
	// WriteMetrics writes what Prometheus reads.
	WriteMetrics(ctx context.Context, w io.Writer) error
	// Healthy returns nil or what is wrong.
	Healthy(ctx context.Context) error
}

// web is what -http asks for. A nil one does nothing.
type web struct {
	listener net.Listener
	log      *slog.Logger
	server   *http.Server  // nil until there is something to serve
	ended    chan struct{} // closed when nothing is served any more
}

// listenWeb takes the address, so that one that cannot be had stops the server before it starts.
func listenWeb(addr string, log *slog.Logger) (*web, error) {
	if addr == "" {
		return nil, nil
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, fmt.Errorf("%w: -http: %w", errUsage, err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot serve metrics at -http %s: %w; choose another address",
			addr, err)
	}
	return &web{listener: l, log: log, ended: make(chan struct{})}, nil
}

// serve serves pages about a node.
func (w *web) serve(node reporter) {
	if w == nil {
		return
	}
	addr := w.listener.Addr()
	tcp, ok := addr.(*net.TCPAddr)
	local := ok && tcp.IP.IsLoopback()
	w.log.Info("serving metrics and health", "addr", addr.String(), "pprof", local)
	if !local {
		w.log.Warn("metrics and health can be read from other machines, by anybody; " +
			"/debug/pprof is left out")
	}
	w.server = &http.Server{
		Handler:           pages(node, local),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      2 * time.Minute, // a profile takes the seconds that it is asked for
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(w.log.Handler(), slog.LevelWarn),
	}
	go func() {
		defer close(w.ended)
		if err := w.server.Serve(w.listener); !errors.Is(err, http.ErrServerClosed) {
			// Locks do not depend on it: better a server that is not watched than none.
			w.log.Error("metrics and health are not served any more", "err", err)
		}
	}()
}

// close ends it, and whatever is being read.
func (w *web) close() {
	switch {
	case w == nil:
	case w.server == nil:
		w.listener.Close() // nobody has connected
	default:
		w.server.Close() // it closes connections in the middle of a page
		<-w.ended
	}
}

const index = `<!DOCTYPE html>
<title>lockd</title>
<h1>lockd</h1>
<ul>
<li><a href="/healthz">/healthz</a>: 200 if this server takes part in a cluster that has a leader
<li><a href="/metrics">/metrics</a>: numbers, as Prometheus reads them
`

const profiles = `<li><a href="/debug/pprof/">/debug/pprof/</a>: where time and memory go
`

// pages are what is served. Profiles tell what is in memory and cost time: they are for whoever
// is on this machine.
func pages(node reporter, local bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		text := index
		if local {
			text += profiles
		}
		send(out, http.StatusOK, text+"</ul>\n")
	})
	mux.HandleFunc("GET /metrics", func(out http.ResponseWriter, r *http.Request) {
		var text bytes.Buffer // so that a failure is no half page
		if err := node.WriteMetrics(r.Context(), &text); err != nil {
			plain(out, http.StatusServiceUnavailable, fmt.Sprintf("no metrics: %v\n", err))
			return
		}
		out.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		send(out, http.StatusOK, text.String())
	})
	mux.HandleFunc("GET /healthz", func(out http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithTimeout(r.Context(), 2*time.Second) // its loop may hang
		defer stop()
		if err := node.Healthy(ctx); err != nil {
			plain(out, http.StatusServiceUnavailable, fmt.Sprintf("not healthy: %v\n", err))
			return
		}
		plain(out, http.StatusOK, "healthy: this server takes part, and there is a leader\n")
	})
	if local {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

func plain(out http.ResponseWriter, code int, text string) {
	out.Header().Set("Content-Type", "text/plain; charset=utf-8")
	send(out, code, text)
}

func send(out http.ResponseWriter, code int, text string) {
	out.WriteHeader(code)
	_, _ = io.WriteString(out, text) // whoever has left needs no page
}
