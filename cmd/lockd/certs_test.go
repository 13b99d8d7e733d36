package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ticketing/rpc"
)

// certs makes certificates.
func certs(t *testing.T, dir string, more ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := start(t, append([]string{"certs", "-dir", dir}, more...)...)
	return p.end(t), p.stdout.String(), p.stderr.String()
}

// tlsFlags are those for one of the certificates in a directory.
func tlsFlags(dir, name string) []string {
	at := func(file string) string { return filepath.Join(dir, file) }
	return []string{"-tls-cert", at(name + ".pem"), "-tls-key", at(name + "-key.pem"),
		"-tls-ca", at("ca.pem")}
}

func TestCertsMakesFilesForTheirOwnersEyes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "certs")
	code, stdout, stderr := certs(t, dir)
	if code != 0 || stderr != "" {
		t.Fatalf("it exits with %d and says %s", code, stderr)
	}
	made := regexp.MustCompile(`(?m)^made (\S+)$`).FindAllStringSubmatch(stdout, -1)
	files, err := os.ReadDir(dir)
	if err != nil || len(made) != 10 || len(files) != 10 {
		t.Errorf("it says that it has made %d files and made %d, %v", len(made), len(files), err)
	}
	for _, m := range made {
		info, err := os.Stat(m[1])
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", m[1], info, err)
		}
	}
	// The flags that it prints are those that work.
	for _, line := range regexp.MustCompile(`(?m)^  -tls-.*$`).FindAllString(stdout, -1) {
		f := strings.Fields(strings.ReplaceAll(line, "server-N", "server-2"))
		if len(f) != 6 {
			t.Fatalf("it prints %q", line)
		}
		if _, err := rpc.LoadTLS(f[1], f[3], f[5]); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestCertsOverwritesNothingAndAddsAServer(t *testing.T) {
	dir := t.TempDir()
	if code, _, stderr := certs(t, dir, "-ids", "1"); code != 0 {
		t.Fatal(stderr)
	}
	before, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := certs(t, dir, "-ids", "2,1")
	if code != 1 || stdout != "" || !strings.Contains(stderr, "server-1.pem is there already") {
		t.Errorf("it exits with %d, prints %q and says %s", code, stdout, stderr)
	}
	if _, err := os.Lstat(filepath.Join(dir, "server-2.pem")); err == nil {
		t.Error("it has begun all the same")
	}
	code, stdout, stderr = certs(t, dir, "-ids", "4")
	if code != 0 || strings.Count(stdout, "made ") != 3 { // two files, and what was made expires
		t.Errorf("it exits with %d, prints %q and says %s", code, stdout, stderr)
	}
	after, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil || string(after) != string(before) {
		t.Errorf("there is another CA now, %v", err)
	}
	if _, err := rpc.LoadTLS(filepath.Join(dir, "server-4.pem"),
		filepath.Join(dir, "server-4-key.pem"), filepath.Join(dir, "ca.pem")); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "ca-key.pem")); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = certs(t, dir, "-ids", "5")
	if code != 1 || !strings.Contains(stderr, "bring the key") {
		t.Errorf("without the CA's key it exits with %d and says %s", code, stderr)
	}
}

// A key without its certificate may be all that is left of it.
func TestCertsDoesNotReplaceALoneKey(t *testing.T) {
	for _, file := range []string{"ca-key.pem", "client-key.pem", "server-2-key.pem"} {
		dir := t.TempDir()
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := certs(t, dir)
		if code != 1 || stdout != "" || !strings.Contains(stderr, file+" is there already") {
			t.Errorf("it exits with %d, prints %q and says %s", code, stdout, stderr)
		}
		text, err := os.ReadFile(path)
		if files, _ := os.ReadDir(dir); err != nil || string(text) != "precious" || len(files) != 1 {
			t.Errorf("%s is now %q, among %d files, %v", file, text, len(files), err)
		}
	}
}

func TestACertificateThatIsWrongIsSaidToBe(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, other} {
		if code, _, stderr := certs(t, d, "-hosts", "a.example,192.0.2.1"); code != 0 {
			t.Fatal(stderr)
		}
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	own := tlsFlags(dir, "server-1")
	// with replaces the file of one flag.
	with := func(i int, file string) []string {
		flags := append([]string(nil), own...)
		flags[i] = file
		return flags
	}
	for _, c := range []struct {
		name  string
		flags []string
		want  string
	}{
		{"no key", own[:2], "-tls-key is missing"},
		{"no certificate", own[2:], "-tls-cert is missing"},
		{"no CA", own[:4], "-tls-ca is missing"},
		{"no such file", with(1, filepath.Join(dir, "none")), "none: no such file"},
		{"no PEM", with(1, empty), "is not PEM"},
		{"no PEM key", with(3, empty), "is not PEM"},
		{"another's key", with(3, filepath.Join(dir, "server-2-key.pem")), "does not go with"},
		{"another CA", with(5, filepath.Join(other, "ca.pem")), "has signed"},
		{"no CA's", with(5, own[1]), "is not a CA's"},
		{"another server's", tlsFlags(dir, "server-2"), "not that of server 1"},
		{"a client's", tlsFlags(dir, "client"), "not that of server 1"},
		{"two minds", append([]string{"-insecure"}, own...), "-insecure is for servers without TLS"},
	} {
		args := []string{"-id", "1", "-peers", "1=127.0.0.1:1,2=127.0.0.1:2", "-dir", t.TempDir()}
		p := start(t, append(args, c.flags...)...)
		if code := p.end(t); code != 2 || !strings.Contains(p.stderr.String(), c.want) {
			t.Errorf("%s: it exits with %d and says\n%s", c.name, code, p.stderr)
		}
	}
}

func TestServersWithCertificatesGiveLocksToClientsWithOne(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, other} {
		if code, _, stderr := certs(t, d); code != 0 {
			t.Fatal(stderr)
		}
	}
	addrs := freeAddrs(t, 3)
	var servers []*program
	for id := 1; id <= 3; id++ {
		flags := tlsFlags(dir, fmt.Sprintf("server-%d", id))
		servers = append(servers, serve(t, id, peersOf(addrs), t.TempDir(), flags...))
	}
	if token, err := lockWith(t, addrs, tlsFlags(dir, "client"), 20*time.Second); err != nil ||
		token != 1 {
		t.Errorf("a client: token %d, %v", token, err)
	}
	for name, flags := range map[string][]string{
		"without TLS": nil, "of another CA": tlsFlags(other, "client"),
	} {
		if token, err := lockWith(t, addrs, flags, 200*time.Millisecond); err == nil {
			t.Errorf("a client %s got token %d", name, token)
		}
	}
	servers[0].stderr.await(t, `reason="no handshake"`)
}

// lockWith takes a lock as a client with certificates, or without.
func lockWith(t *testing.T, addrs, flags []string, patience time.Duration) (uint64, error) {
	t.Helper()
	var options rpc.Options
	if flags != nil {
		config, err := rpc.LoadTLS(flags[1], flags[3], flags[5])
		if err != nil {
			t.Fatal(err)
		}
		options.TLS = config
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	client, err := rpc.Dial(ctx, addrs, options)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	l, err := client.Lock(ctx, "door", time.Minute)
	if err != nil {
		return 0, err
	}
	return uint64(l.Token()), nil
}
