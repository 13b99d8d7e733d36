package main

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// get fetches a page.
func get(t *testing.T, addr, path string) (int, string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

// webAddr finds where a server serves its pages.
func webAddr(t *testing.T, p *program) string {
	t.Helper()
	p.stderr.await(t, "pprof=")
	m := regexp.MustCompile(`serving metrics and health" node=1 addr=\S+:(\d+)`).
		FindStringSubmatch(p.stderr.String())
	if m == nil {
		t.Fatalf("it does not say where:\n%s", p.stderr)
	}
	return net.JoinHostPort("127.0.0.1", m[1])
}

func TestThePagesTellHowAServerIs(t *testing.T) {
	addrs := freeAddrs(t, 1)
	p := serve(t, 1, peersOf(addrs), t.TempDir(), "-http", "127.0.0.1:0")
	web := webAddr(t, p)
	lock(t, dial(t, addrs...), "a secret key")

	code, index := get(t, web, "/")
	links := regexp.MustCompile(`href="([^"]+)"`).FindAllStringSubmatch(index, -1)
	if code != 200 || len(links) != 3 {
		t.Errorf("/ is %d\n%s", code, index)
	}
	for _, m := range links {
		if code, text := get(t, web, m[1]); code != 200 || text == "" {
			t.Errorf("%s is %d %q", m[1], code, text)
		}
	}
	if _, text := get(t, web, "/healthz"); !strings.HasPrefix(text, "healthy: ") {
		t.Errorf("/healthz says %q", text)
	}
	_, text := get(t, web, "/metrics")
	if !strings.Contains(text, "\nlockd_locks_held 1\n") || strings.Contains(text, "secret") {
		t.Errorf("/metrics says\n%s", text)
	}
	for _, path := range []string{"/nothing", "/debug", "/debug/pprof/nothing"} {
		if code, _ := get(t, web, path); code != 404 {
			t.Errorf("%s is %d", path, code)
		}
	}
}

func TestAServerWithoutALeaderIsNotHealthy(t *testing.T) {
	p := serve(t, 1, peersOf(freeAddrs(t, 3)), t.TempDir(), "-http", "127.0.0.1:0")
	code, text := get(t, webAddr(t, p), "/healthz")
	if code != 503 || !strings.Contains(text, "not healthy: no leader is known") {
		t.Errorf("/healthz is %d %q", code, text)
	}
}

// Where others can read them, the pages are fewer, and the log says that they can.
func TestProfilesAreForThisMachineAlone(t *testing.T) {
	p := serve(t, 1, peersOf(freeAddrs(t, 1)), t.TempDir(), "-http", ":0")
	p.stderr.await(t, "can be read from other machines")
	web := webAddr(t, p)
	for path, want := range map[string]int{
		"/": 200, "/metrics": 200, "/debug/pprof/": 404, "/debug/pprof/cmdline": 404,
	} {
		if code, text := get(t, web, path); code != want || strings.Contains(text, "pprof") {
			t.Errorf("%s is %d\n%s", path, code, text)
		}
	}
}

func TestAStopLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	addrs := freeAddrs(t, 1)
	p := serve(t, 1, peersOf(addrs), t.TempDir(), "-http", "127.0.0.1:0")
	if code, _ := get(t, webAddr(t, p), "/metrics"); code != 200 {
		t.Errorf("/metrics is %d", code)
	}
	client := dial(t, addrs...)
	lock(t, client, "door")
	during := runtime.NumGoroutine()
	if code := p.stop(t); code != 0 || during < before+5 {
		t.Errorf("it exits with %d; %d goroutines became %d", code, before, during)
	}
	client.Close()
	eventually(t, "all goroutines are gone", func() bool { return runtime.NumGoroutine() <= before })
}
