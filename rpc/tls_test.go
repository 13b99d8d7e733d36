package rpc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/raft"
)

// authority is a CA for a test. Its clock is the test's.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	template := a.template(time.Hour)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	a.cert, a.key = template, a.newKey()
	a.cert = a.sign("ca", template, a.newKey())
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

// template is a certificate whose life began two hours ago and ends in so long.
func (a *authority) template(life time.Duration) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(life),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// sign writes NAME.pem and NAME.key. A CA signs itself.
func (a *authority) sign(
	name string, template *x509.Certificate, key *ecdsa.PrivateKey,
) *x509.Certificate {
	if template.IsCA {
		a.key = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".pem", "CERTIFICATE", der)
	a.write(name+".key", "EC PRIVATE KEY", secret)
	return cert
}

func (a *authority) write(name, kind string, der []byte) {
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(a.file(name), text, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// issue makes a certificate with these DNS names that lives for so long, and loads it.
func (a *authority) issue(name string, life time.Duration, names ...string) *tls.Config {
	a.t.Helper()
	template := a.template(life)
	template.DNSNames = names
	a.sign(name, template, a.newKey())
	if life <= 0 { // LoadTLS would not take it
		own, err := tls.LoadX509KeyPair(a.file(name+".pem"), a.file(name+".key"))
		if err != nil {
			a.t.Fatal(err)
		}
		return &tls.Config{Certificates: []tls.Certificate{own}}
	}
	config, err := LoadTLS(a.file(name+".pem"), a.file(name+".key"), a.file("ca.pem"))
	if err != nil {
		a.t.Fatal(err)
	}
	return config
}

func (a *authority) server(id raft.ServerID) *tls.Config {
	return a.issue(PeerName(id), time.Hour, ServerName, PeerName(id))
}

// tlsBubble runs a test in a bubble on three servers with TLS.
func tlsBubble(t *testing.T, test func(*testing.T, *cluster, *authority, *logbook)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, a, book := bubbleCluster(t, 0), newAuthority(t), newLogbook(t)
		c.config.Log = book.logger()
		for id := raft.ServerID(1); id <= 3; id++ {
			c.config.TLS = a.server(id)
			c.start(id, c.net.listen(name(id)))
		}
		c.leader()
		test(t, c, a, book)
	})
}

// tlsClient returns a client with a certificate of its own.
func (c *cluster) tlsClient(t *testing.T, config *tls.Config) (*Client, error) {
	k, err := Dial(within(t), []string{c.addrs[1], c.addrs[2], c.addrs[3]},
		Options{Owner: "A", TLS: config, Dial: c.net.dialer("A")})
	if err == nil {
		t.Cleanup(k.Close)
	}
	return k, err
}

func TestAClusterWithTLSGrantsLocks(t *testing.T) {
	tlsBubble(t, func(t *testing.T, c *cluster, a *authority, book *logbook) {
		k, err := c.tlsClient(t, a.issue("client", time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		first := lock(t, k, "door", time.Minute)
		c.stop(c.leader())
		c.leader()
		if second := lock(t, k, "gate", time.Minute); second.Token() <= first.Token() {
			t.Errorf("token %d after %d", second.Token(), first.Token())
		}
		if k := book.count("WARN refused a "); k > 0 {
			t.Errorf("%d lines about refusals:\n%s", k, book)
		}
	})
}

// anybody is a client's side that does not look at whom it talks to.
func anybody(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.InsecureSkipVerify = true
	return config
}

// ask calls a Raft RPC as server from, by a connection that it may close.
func ask(c net.Conn, from, to raft.ServerID) (Status, error) {
	client := rpc.NewClient(c)
	defer client.Close()
	h := Header{Cluster: 1, From: from, To: to, Term: 99}
	var y AppendEntriesReply
	args := &AppendEntriesArgs{Header: h, AppendEntries: raft.AppendEntries{LeaderCommit: 1 << 30}}
	err := client.Call("Raft.AppendEntries", args, &y)
	return y.Status, err
}

// Whoever has no business here is refused, the log says why, and the cluster takes no notice.
func TestWithTLSIntrudersAreRefused(t *testing.T) {
	for name, intruder := range map[string]struct {
		config  func(own, foreign *authority) *tls.Config // nil for none
		from    raft.ServerID
		refused bool   // the message; otherwise the connection
		logged  string // in the line of the server that was asked
	}{
		"another CA": {
			func(_, foreign *authority) *tls.Config { return foreign.server(2) }, 2, false,
			"signed by unknown authority",
		},
		"an expired certificate": {
			func(own, _ *authority) *tls.Config {
				return own.issue("late", -time.Minute, ServerName, PeerName(2))
			}, 2, false, "certificate has expired",
		},
		"no certificate": {
			func(own, _ *authority) *tls.Config { return &tls.Config{} }, 2, false,
			"client didn't provide a certificate",
		},
		"an old version of TLS": {
			func(own, _ *authority) *tls.Config {
				config := own.server(2)
				config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
				return config
			}, 2, false, "unsupported versions",
		},
		"no TLS": {nil, 2, false, "does not look like a TLS handshake"},
		"a client as a server": {
			func(own, _ *authority) *tls.Config { return own.issue("client", time.Hour) }, 2, true,
			`the certificate is not that server's: server 2`,
		},
		"a client with a server's first name": {
			func(own, _ *authority) *tls.Config { return own.issue("x", time.Hour, ServerName) }, 2, true,
			`the certificate is not that server's: server 2`,
		},
		"a server as another one": {
			func(own, _ *authority) *tls.Config { return own.server(3) }, 2, true,
			`the certificate is not that server's: server 2`,
		},
		"a server that is none": {
			func(own, _ *authority) *tls.Config { return own.server(9) }, 9, true, "not one of",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tlsBubble(t, func(t *testing.T, c *cluster, a *authority, book *logbook) {
				before := termOf(c.nodes[1])
				raw, err := c.net.dialer("x")(within(t), c.addrs[1])
				if err != nil {
					t.Fatal(err)
				}
				if intruder.config != nil {
					raw = tls.Client(raw, anybody(intruder.config(a, newAuthority(t))))
				}
				status, err := ask(raw, intruder.from, 1)
				if refused := err == nil; refused != intruder.refused || status != Refused {
					t.Errorf("the answer is %d, %v", status, err)
				}
				synctest.Wait()
				if book.count("WARN refused a ", "node=1", "addr=x:1", intruder.logged) != 1 {
					t.Errorf("no line says %q:\n%s", intruder.logged, book)
				}
				k, err := c.tlsClient(t, a.issue("client", time.Hour))
				if err != nil {
					t.Fatal(err)
				}
				lock(t, k, "door", time.Minute)
				if after := termOf(c.nodes[1]); after != before {
					t.Errorf("the term went from %d to %d", before, after)
				}
			})
		})
	}
}

// A certificate is refused by who connects, too: a peer that answers must be the one that was
// meant, and a client talks to servers alone.
func TestWithTLSNobodyConnectsToAnImpostor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a, book := bubbleCluster(t, 0), newAuthority(t), newLogbook(t)
		c.config.Log = book.logger()
		for id := raft.ServerID(1); id <= 2; id++ {
			c.config.TLS = a.server(id)
			c.start(id, c.net.listen(name(id)))
		}
		// Whoever sits at the address of server 3 has the certificate of server 2.
		c.config.TLS = a.issue("thief", time.Hour, ServerName, PeerName(2))
		c.start(3, c.net.listen(name(3)))
		time.Sleep(3 * longest)
		for id := raft.ServerID(1); id <= 2; id++ {
			said := book.count("WARN refused a connection", "node="+fmt.Sprint(uint64(id)), "peer=3",
				"does not prove to be lockd-3")
			if said != 1 {
				t.Errorf("server %d does not say what is wrong:\n%s", id, book)
			}
		}
		if n, _ := c.net.dialer("A")(within(t), c.addrs[1]); n != nil {
			_, err := secure(within(t), n, a.issue("client", time.Hour), "resource")
			if err == nil || !strings.Contains(err.Error(), "n1:1 does not prove to be resource") {
				t.Errorf("a connection to what should be another service: %v", err)
			}
		}
	})
}

// One that begins no handshake, or does not end it, is closed in time.
func TestAHandshakeHasADeadline(t *testing.T) {
	tlsBubble(t, func(t *testing.T, c *cluster, a *authority, book *logbook) {
		for sent := range 2 {
			raw, err := c.net.dialer("x")(within(t), c.addrs[1])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(raw, "\x16\x03\x01"[:3*sent]); err != nil {
				t.Fatal(err)
			}
			took := timed(func() { _, err = io.Copy(io.Discard, raw) })
			if err != nil || took != firstPatience {
				t.Errorf("it is closed after %v, %v", took, err)
			}
			raw.Close()
		}
	})
}

func TestTLSOnAPortWithoutIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, book := loggedCluster(t)
		c.leader()
		config := newAuthority(t).server(2)
		ctx, cancel := context.WithTimeout(within(t), time.Second)
		defer cancel()
		raw, err := c.net.dialer("x")(ctx, c.addrs[1])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := secure(ctx, raw, config, PeerName(1)); err == nil {
			t.Error("it has shown a certificate")
		}
		synctest.Wait()
		if book.count("refused a connection", "node=1", "addr=x:1", "it speaks TLS") != 1 {
			t.Errorf("no line says that it was TLS:\n%s", book)
		}
		lock(t, c.client(t, "A"), "door", time.Minute)
	})
}

func TestFilesThatAreWrongAreNamed(t *testing.T) {
	a, foreign := newAuthority(t), newAuthority(t)
	a.server(1)
	a.server(2)
	a.issue("late", -time.Minute)
	early := a.template(time.Hour)
	early.NotBefore = time.Now().Add(time.Minute)
	a.sign("early", early, a.newKey())
	old := &authority{t: t, dir: a.dir}
	template := old.template(-time.Minute)
	template.IsCA, template.BasicConstraintsValid = true, true
	old.cert = template
	old.sign("oldca", template, old.newKey())
	for name, text := range map[string]string{"empty.pem": "", "text.pem": "no PEM"} {
		if err := os.WriteFile(a.file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ cert, key, ca, file, says string }{
		"no certificate":     {"gone.pem", "lockd-1.key", "ca.pem", "gone.pem", "no such file"},
		"no key":             {"lockd-1.pem", "gone.key", "ca.pem", "gone.key", "no such file"},
		"no CA":              {"lockd-1.pem", "lockd-1.key", "gone.pem", "gone.pem", "no such file"},
		"an empty one":       {"empty.pem", "lockd-1.key", "ca.pem", "empty.pem", "is not PEM"},
		"a text as key":      {"lockd-1.pem", "text.pem", "ca.pem", "text.pem", "is not PEM"},
		"a text as CA":       {"lockd-1.pem", "lockd-1.key", "text.pem", "text.pem", "is not PEM"},
		"a key for a cert":   {"lockd-1.key", "lockd-1.key", "ca.pem", "lockd-1.key", "with a CERTIFICATE"},
		"another's key":      {"lockd-1.pem", "lockd-2.key", "ca.pem", "lockd-2.key", "does not go with"},
		"an expired one":     {"late.pem", "late.key", "ca.pem", "late.pem", "has expired at 2"},
		"an early one":       {"early.pem", "early.key", "ca.pem", "early.pem", "not valid before 2"},
		"a CA that is none":  {"lockd-1.pem", "lockd-1.key", "lockd-2.pem", "lockd-2.pem", "not a CA's"},
		"an expired CA":      {"lockd-1.pem", "lockd-1.key", "oldca.pem", "oldca.pem", "has expired at 2"},
		"a CA of others":     {"lockd-1.pem", "lockd-1.key", foreign.file("ca.pem"), "ca.pem", "not one that"},
		"which one, of both": {"lockd-1.pem", "lockd-1.key", foreign.file("ca.pem"), "lockd-1.pem", "signed"},
	} {
		path := func(name string) string {
			if filepath.IsAbs(name) {
				return name
			}
			return a.file(name)
		}
		_, err := LoadTLS(path(c.cert), path(c.key), path(c.ca))
		if err == nil || !strings.Contains(err.Error(), c.file) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.HasPrefix(c.says, "no such") && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v is no os.ErrNotExist", name, err)
		}
	}
	if _, err := LoadTLS(a.file("lockd-1.pem"), a.file("lockd-1.key"), a.file("ca.pem")); err != nil {
		t.Error(err)
	}
}

// A server whose own certificate is of no use says so itself. The others do without it.
func TestAServerThatIsRefusedSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a, book := bubbleCluster(t, 0), newAuthority(t), newLogbook(t)
		c.config.Log = book.logger()
		for id := raft.ServerID(1); id <= 3; id++ {
			c.config.TLS = a.server(id)
			if id == 3 {
				late := a.issue("late", -time.Minute, ServerName, PeerName(3))
				c.config.TLS.Certificates = late.Certificates
			}
			c.start(id, c.net.listen(name(id)))
		}
		time.Sleep(3 * longest)
		if book.count("WARN refused a connection", "node=3", "peer=1", "remote error") != 1 {
			t.Errorf("it does not say that server 1 refuses it:\n%s", book)
		}
		k, err := c.tlsClient(t, a.issue("client", time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		lock(t, k, "door", time.Minute)
	})
}
