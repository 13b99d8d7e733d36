package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"ticketing/raft"
	"ticketing/rpc"
)

// mint is what certs is asked for.
type mint struct {
	dir   string
	ids   []raft.ServerID
	hosts []string
	life  time.Duration
	made  []string // files
}

// strike makes all files that are asked for, or none if one of them is there.
func (m *mint) strike() error {
	needClient := !m.has("client.pem")
	if err := m.checkFree(needClient); err != nil {
		return err
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	ca, err := m.authority()
	if err != nil {
		return err
	}
	for _, id := range m.ids {
		if err := m.issue(serverFile(id), m.server(id), ca); err != nil {
			return err
		}
	}
	if !needClient { // a server was added
		return nil
	}
	template := template("client", m.life)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return m.issue("client", template, ca)
}

func (m *mint) has(file string) bool {
	_, err := os.Lstat(filepath.Join(m.dir, file))
	return !errors.Is(err, fs.ErrNotExist)
}

// checkFree looks, before the first file is made, whether one of them is there.
func (m *mint) checkFree(needClient bool) error {
	var names []string
	for _, id := range m.ids {
		names = append(names, pair(serverFile(id))...)
	}
	if needClient {
		names = append(names, pair("client")...)
	}
	if !m.has("ca.pem") {
		names = append(names, pair("ca")...)
	}
	for _, name := range names {
		if m.has(name) {
			return fmt.Errorf("%s is there already; move it away to replace it",
				filepath.Join(m.dir, name))
		}
	}
	return nil
}

// server is what stands in a server's certificate. It is the client of its peers, too.
func (m *mint) server(id raft.ServerID) *x509.Certificate {
	template := template(fmt.Sprintf("server %d", id), m.life)
	template.DNSNames = []string{rpc.ServerName, rpc.PeerName(id)}
	template.ExtKeyUsage = []x509.ExtKeyUsage{
		x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth,
	}
	for _, host := range m.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return template
}

func serverFile(id raft.ServerID) string { return fmt.Sprintf("server-%d", id) }

// pair is the names of the files of a certificate and its key.
func pair(name string) []string { return []string{name + ".pem", name + "-key.pem"} }

// A signer is a certificate with its key.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// authority reads the CA that is there, or makes one.
func (m *mint) authority() (*signer, error) {
	names := pair("ca")
	certPEM, err := os.ReadFile(filepath.Join(m.dir, names[0]))
	if errors.Is(err, fs.ErrNotExist) {
		root := template("CA of lockd", 3653*24*time.Hour)
		root.IsCA, root.BasicConstraintsValid = true, true
		root.MaxPathLenZero = true
		root.KeyUsage = x509.KeyUsageCertSign
		ca := &signer{cert: root}
		return ca, m.issue("ca", root, ca)
	}
	if err != nil {
		return nil, err
	}
	return m.readAuthority(certPEM)
}

func (m *mint) readAuthority(certPEM []byte) (*signer, error) {
	names := pair("ca")
	keyPEM, err := os.ReadFile(filepath.Join(m.dir, names[1]))
	if err != nil {
		return nil, fmt.Errorf("there is a CA, but not its key: %w; bring the key, or name "+
			"another directory", err)
	}
	cert, _ := pem.Decode(certPEM)
	key, _ := pem.Decode(keyPEM)
	if cert == nil || key == nil {
		return nil, fmt.Errorf("%s and %s in %s are not both PEM", names[0], names[1], m.dir)
	}
	ca := &signer{}
	var errs [2]error
	ca.cert, errs[0] = x509.ParseCertificate(cert.Bytes)
	ca.key, errs[1] = x509.ParseECPrivateKey(key.Bytes)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("reading the CA in %s: %w", m.dir, err)
	}
	return ca, nil
}

// template is what all certificates have. They are good from an hour ago: clocks differ.
func template(name string, life time.Duration) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.Add(life),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}
}

// issue makes a certificate and its key. A CA that has no key yet signs its own.
func (m *mint) issue(name string, template *x509.Certificate, ca *signer) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if ca.key == nil {
		ca.key = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, &key.PublicKey, ca.key)
	if err != nil {
		return fmt.Errorf("signing the certificate of %s: %w", name, err)
	}
	if ca.cert == template {
		if ca.cert, err = x509.ParseCertificate(der); err != nil {
			return err
		}
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	names := pair(name)
	return errors.Join(m.write(names[0], "CERTIFICATE", der),
		m.write(names[1], "EC PRIVATE KEY", private))
}

// write makes a file that is not there and that its owner alone can read.
func (m *mint) write(name, kind string, der []byte) error {
	f, err := os.OpenFile(filepath.Join(m.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	m.made = append(m.made, name)
	return errors.Join(pem.Encode(f, &pem.Block{Type: kind, Bytes: der}), f.Close())
}
