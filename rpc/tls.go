package rpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"ticketing/raft"
)

// ServerName is the DNS name in the certificate of every server: the one that clients ask for.
const ServerName = "lockd"

// PeerName is the DNS name in the certificate of server id: the one that its peers ask for, and
// the one that lets it speak as that server.
func PeerName(id raft.ServerID) string {
	return ServerName + "-" + strconv.FormatUint(uint64(id), 10)
}

// LoadTLS reads what a server or a client needs to prove who it is and to know the others: its
// certificate, its private key and the certificate of the one CA that has signed all of the
// cluster's, in files of PEM. The errors say which file is wrong, and why.
//
// TLS 1.3 alone is spoken, and both sides show a certificate. Certificates are looked at when a
// connection is made; one that expires later does not end it.
func LoadTLS(cert, key, ca string) (*tls.Config, error) {
	own, err := loadOwn(cert, key)
	if err != nil {
		return nil, err
	}
	pool, err := loadCA(ca)
	if err != nil {
		return nil, err
	}
	uses := []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
	if _, err := own.Leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: uses}); err != nil {
		return nil, fmt.Errorf("the certificate in %s is not one that the CA in %s has signed: %w",
			cert, ca, err)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{own},
		RootCAs:      pool,
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		// A session that is resumed is not checked against the clock again.
		SessionTicketsDisabled: true,
	}, nil
}

// loadOwn reads a certificate and the key that belongs to it.
func loadOwn(cert, key string) (tls.Certificate, error) {
	var none tls.Certificate
	certPEM, _, err := readPEM(cert, "CERTIFICATE")
	if err != nil {
		return none, fmt.Errorf("the certificate: %w", err)
	}
	keyPEM, err := os.ReadFile(key)
	if err != nil {
		return none, fmt.Errorf("the private key: %w", err)
	}
	if block, _ := pem.Decode(keyPEM); block == nil {
		return none, fmt.Errorf("the private key: %s is not PEM", key)
	}
	own, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return none, fmt.Errorf("the private key in %s does not go with the certificate in %s: %w",
			key, cert, err)
	}
	return own, checkTime(cert, own.Leaf)
}

// loadCA reads the certificates of whom to trust.
func loadCA(file string) (*x509.CertPool, error) {
	_, blocks, err := readPEM(file, "CERTIFICATE")
	if err != nil {
		return nil, fmt.Errorf("the CA: %w", err)
	}
	pool := x509.NewCertPool()
	for _, block := range blocks {
		cert, err := x509.ParseCertificate(block)
		if err != nil {
			return nil, fmt.Errorf("the CA: %s: %w", file, err)
		}
		if !cert.IsCA {
			return nil, fmt.Errorf("the CA: the certificate in %s is not a CA's", file)
		}
		if err := checkTime(file, cert); err != nil {
			return nil, fmt.Errorf("the CA: %w", err)
		}
		pool.AddCert(cert)
	}
	return pool, nil
}

// readPEM returns a file's text and, of its PEM blocks, those of one kind. There is at least one.
func readPEM(file, kind string) (text []byte, blocks [][]byte, err error) {
	text, err = os.ReadFile(file)
	if err != nil {
		return nil, nil, err // it names the file
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == kind {
			blocks = append(blocks, block.Bytes)
		}
	}
	if len(blocks) == 0 {
		return nil, nil, fmt.Errorf("%s is not PEM with a %s in it", file, kind)
	}
	return text, blocks, nil
}

func checkTime(file string, cert *x509.Certificate) error {
	now := time.Now()
	if now.After(cert.NotAfter) {
		return fmt.Errorf("the certificate in %s has expired at %s",
			file, cert.NotAfter.Format(time.RFC3339))
	}
	if now.Before(cert.NotBefore) {
		return fmt.Errorf("the certificate in %s is not valid before %s; is this clock right?",
			file, cert.NotBefore.Format(time.RFC3339))
	}
	return nil
}

// secure makes a connection to a server that must prove to be serverName: ServerName for a client,
// PeerName for a peer. It closes the connection if that fails. With no config it changes nothing.
//
// In TLS 1.3 this side is done before the server has looked at this side's certificate: if it is
// refused, the first Read tells.
func secure(
	ctx context.Context, c net.Conn, config *tls.Config, serverName string,
) (net.Conn, error) {
	if config == nil {
		return c, nil
	}
	config = config.Clone()
	config.ServerName = serverName
	t := tls.Client(c, config)
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s %w to be %s: %w",
			c.RemoteAddr(), errUnproven, serverName, err), c.Close())
	}
	return t, nil
}

var errUnproven = errors.New("does not prove")

// remoteAlert reports whether an error is the other side's refusal of this side's certificate.
func remoteAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// welcome is the listener's half of secure. It returns the names that the other side has proved,
// which are none without TLS.
func welcome(
	ctx context.Context, c net.Conn, config *tls.Config,
) (_ net.Conn, names []string, err error) {
	if config == nil {
		return c, nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, firstPatience)
	defer cancel()
	t := tls.Server(c, config)
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, nil, err
	}
	// What was not verified proves nothing, whatever the config lets pass.
	if chains := t.ConnectionState().VerifiedChains; len(chains) > 0 {
		names = chains[0][0].DNSNames
	}
	return t, names, nil
}

// maySpeakAs reports whether whoever is at the other end may send Raft's messages as that server.
// Any certificate of the CA is good for the Lock service, none but a server's own for Raft's.
func (s *session) maySpeakAs(id raft.ServerID) bool {
	return s.node.config.TLS == nil || slices.Contains(s.names, PeerName(id))
}
