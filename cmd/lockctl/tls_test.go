package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ticketing/rpc"
)

// certify writes a certificate and its key. Without a parent it is a CA's.
func certify(t *testing.T, dir, name string, parent *x509.Certificate, by *ecdsa.PrivateKey) (
	cert *x509.Certificate, key *ecdsa.PrivateKey,
) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert = &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{rpc.ServerName, rpc.PeerName(1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IsCA:     parent == nil, BasicConstraintsValid: true,
	}
	if parent == nil {
		parent, by = cert, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	own, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".pem":     {Type: "CERTIFICATE", Bytes: raw},
		name + "-key.pem": {Type: "PRIVATE KEY", Bytes: own},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestLockctlSpeaksTLS(t *testing.T) {
	dir := t.TempDir()
	ca, key := certify(t, dir, "ca", nil, nil)
	certify(t, dir, "one", ca, key)
	certify(t, dir, "other", nil, nil)
	file := func(name string) string { return filepath.Join(dir, name) }
	config, err := rpc.LoadTLS(file("one.pem"), file("one-key.pem"), file("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	service(t, 1, func(c *rpc.Config) { c.TLS = config })
	flags := " -timeout 1s -tls-cert " + file("one.pem") + " -tls-key " + file("one-key.pem") +
		" -tls-ca "
	for line, want := range map[string]struct {
		code   int
		stderr string
	}{
		"list" + flags + file("ca.pem"):                     {0, ""},
		"list -timeout 1s":                                  {1, "lockctl: "},
		"list" + flags + file("other.pem"):                  {1, "other.pem"},
		"status" + flags + file("missing"):                  {1, "missing"},
		"lock door" + flags + file("ca.pem") + " -- true":   {0, ""},
		"lock door" + flags + file("missing") + " -- true":  {1, "missing"},
		"lock door -timeout 1s -wait 1s -lease 9s -- false": {75, "lockctl: "},
	} {
		code, stdout, stderr := lockctl(t, line)
		if code != want.code || !strings.Contains(stderr, want.stderr) {
			t.Errorf("%s exits with %d, prints %q and says %q", line, code, stdout, stderr)
		}
	}
}
