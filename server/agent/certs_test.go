package agent_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

// authority is a certificate authority in memory.
type authority struct {
	*testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

type signed struct{ certificate, key []byte }

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key := result.Of(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).OK(t)
	return key
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{T: t, key: newKey(t)}
	a.certificate = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test's authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	raw := result.Of(x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, a.key.Public(), a.key)).OK(t)
	a.certificate = result.Of(x509.ParseCertificate(raw)).OK(t)
	return a
}

func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// serverUse is the extended key usage of a server's certificate.
var serverUse = [2]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}

// sign returns a certificate that is valid for the duration from now.
func (a authority) sign(validFor time.Duration, uses []x509.ExtKeyUsage, names ...string) signed {
	a.Helper()
	key := newKey(a.T)
	serial := result.Of(rand.Int(rand.Reader, big.NewInt(1<<62))).OK(a)
	raw := result.Of(x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, DNSNames: names, ExtKeyUsage: uses,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validFor), KeyUsage: x509.KeyUsageDigitalSignature,
	}, a.certificate, key.Public(), a.key)).OK(a)
	encoded := result.Of(x509.MarshalECPrivateKey(key)).OK(a)
	return signed{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}),
	}
}

func (a authority) server(region string) signed {
	return a.sign(time.Hour, serverUse[:], agent.ServerName(region), "localhost")
}

// files are the certificate files of a server. A test may overwrite them.
type files struct {
	*testing.T
	agent.CertConfig
}

func newFiles(t *testing.T, ca []byte, s signed) files {
	t.Helper()
	dir := t.TempDir()
	f := files{t, agent.CertConfig{Certificate: filepath.Join(dir, "server.pem"), Key: filepath.Join(dir, "server-key.pem")}}
	if ca != nil {
		f.CA = filepath.Join(dir, "ca.pem")
		f.write(f.CA, ca)
	}
	f.write(f.Certificate, s.certificate)
	f.write(f.Key, s.key)
	return f
}

func (f files) write(name string, content []byte) {
	f.Helper()
	must.NoError(f, os.WriteFile(name, content, 0o600))
}

func (f files) open() *agent.Certs {
	f.Helper()
	certs := result.Of(agent.OpenCerts(f.CertConfig)).OK(f)
	return certs
}

// serveHello accepts connections until the test ends. After a successful handshake it writes
// "hello".
func serveHello(t *testing.T, config *tls.Config) (address string) {
	t.Helper()
	listener := result.Of(net.Listen("tcp", "127.0.0.1:0")).OK(t)
	done := make(chan struct{})
	t.Cleanup(func() {
		must.NoError(t, listener.Close())
		<-done
	})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			secure := tls.Server(conn, config)
			if err := secure.HandshakeContext(t.Context()); err == nil {
				_, _ = io.WriteString(secure, "hello")
			}
			_ = secure.Close()
		}
	}()
	return listener.Addr().String()
}

// readHello returns the text that serveHello writes to the connection. With TLS 1.3 a client detects
// a refusal only when it reads.
func readHello(conn net.Conn, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	return string(text), errors.Join(err, conn.Close())
}

// client connects with a certificate, or with none, and returns the text of serveHello.
func client(t *testing.T, address, name string, roots authority, s *signed, version uint16) (string, error) {
	t.Helper()
	config := &tls.Config{ServerName: name, RootCAs: x509.NewCertPool(), MaxVersion: version}
	config.RootCAs.AddCert(roots.certificate)
	if s != nil {
		pair := result.Of(tls.X509KeyPair(s.certificate, s.key)).OK(t)
		// Not Certificates: a client with that field sends only certificates of the authorities that the
		// server names, and an attacker could send others.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address)
	return readHello(conn, err)
}

// Each listener accepts the certificates that it should accept, and no others.
func TestCerts_handshakes(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	clientUse := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	server, otherRegion, otherCA := ours.server("global"), ours.server("mars"), theirs.server("global")
	user := ours.sign(time.Hour, clientUse, "client.global.nodedrain")
	expired := ours.sign(-time.Minute, serverUse[:], agent.ServerName("global"))
	notForClients := ours.sign(time.Hour, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, agent.ServerName("global"))
	wildcard := ours.sign(time.Hour, clientUse, "*.nodedrain", "*.global.nodedrain")

	mutual := newFiles(t, ours.pem(), server).open()
	oneSided := newFiles(t, nil, server).open()
	must.Nil(t, oneSided.Peers())
	peers, public, plain := serveHello(t, mutual.Peers()), serveHello(t, mutual.Public()), serveHello(t, oneSided.Public())

	cases := []struct {
		name        string
		certificate *signed
		// Whether each listener accepts it. plain is the listener of a server without a CA.
		peers, public, plain bool
	}{
		{"a server", &server, true, true, true},
		{"a server of another region", &otherRegion, false, true, true},
		{"a client", &user, false, true, true},
		{"a client with a wildcard that covers the servers", &wildcard, false, true, true},
		{"no certificate", nil, false, false, true},
		{"another authority's server", &otherCA, false, false, true},
		{"a server whose certificate has expired", &expired, false, false, true},
		{"a certificate that is not for clients", &notForClients, false, false, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, listener := range []struct {
				what, address, name string
				accepts             bool
			}{
				{"peers", peers, agent.ServerName("global"), c.peers},
				{"public", public, "localhost", c.public},
				{"public without a CA", plain, "localhost", c.plain},
			} {
				text, err := client(t, listener.address, listener.name, ours, c.certificate, 0)
				must.Eq(t, listener.accepts, err == nil, must.Sprintf("%s: %v", listener.what, err))
				must.Eq(t, listener.accepts, text == "hello", must.Sprint(listener.what))
			}
		})
	}
}

// Servers use TLS 1.3 or newer among themselves. The API accepts TLS 1.2 or newer.
func TestCerts_versions(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	server := ours.server("global")
	certs := newFiles(t, ours.pem(), server).open()
	peers, public := serveHello(t, certs.Peers()), serveHello(t, certs.Public())
	for _, c := range []struct {
		name          string
		version       uint16
		peers, public bool
	}{{"1.3", tls.VersionTLS13, true, true}, {"1.2", tls.VersionTLS12, false, true}, {"1.1", tls.VersionTLS11, false, false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := client(t, peers, agent.ServerName("global"), ours, &server, c.version)
			must.Eq(t, c.peers, err == nil)
			_, err = client(t, public, "localhost", ours, &server, c.version)
			must.Eq(t, c.public, err == nil)
		})
	}
}

// A server that dials accepts only a server's certificate.
func TestCerts_dial(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	dial := func(from *agent.Certs, address string) (string, error) {
		conn, err := (&tls.Dialer{Config: from.Peers()}).DialContext(t.Context(), "tcp", address)
		return readHello(conn, err)
	}
	one, two := newFiles(t, ours.pem(), ours.server("global")).open(), newFiles(t, ours.pem(), ours.server("global")).open()
	text := result.Of(dial(one, serveHello(t, two.Peers()))).OK(t)
	must.Eq(t, "hello", text)

	// Peers with certificates of the same authority that are not a server's are refused.
	for _, c := range []struct{ name, want string }{
		{"localhost", "it does not name " + agent.ServerName("global")},
		{"*.global.nodedrain", "its certificate is not that of a server of this region"},
	} {
		user := ours.sign(time.Hour, serverUse[:], c.name)
		pair := result.Of(tls.X509KeyPair(user.certificate, user.key)).OK(t)
		_, err := dial(one, serveHello(t, &tls.Config{Certificates: []tls.Certificate{pair}}))
		must.ErrorContains(t, err, c.want)
	}

	strangers := newFiles(t, theirs.pem(), theirs.server("global")).open()
	_, err := dial(one, serveHello(t, strangers.Peers()))
	must.ErrorContains(t, err, "unknown authority")

	// Certificates for clients only, expired ones and those of another authority are refused.
	for _, s := range []signed{
		ours.sign(time.Hour, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, agent.ServerName("global")),
		ours.sign(-time.Minute, serverUse[:], agent.ServerName("global")),
	} {
		pair := result.Of(tls.X509KeyPair(s.certificate, s.key)).OK(t)
		_, err = dial(one, serveHello(t, &tls.Config{Certificates: []tls.Certificate{pair}}))
		must.ErrorContains(t, err, "the certificate of a server, by CA")
	}
}

// A configuration for dialing uses reloaded certificates, also those of another authority.
func TestCerts_dialAfterReload(t *testing.T) {
	t.Parallel()
	old, young := newAuthority(t), newAuthority(t)
	f := newFiles(t, old.pem(), old.server("global"))
	certs := f.open()
	config := certs.Peers()
	moved := newFiles(t, young.pem(), young.server("global")).open()
	address := serveHello(t, moved.Peers())
	dial := func() error {
		conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address)
		_, err = readHello(conn, err)
		return err
	}
	must.ErrorContains(t, dial(), "unknown authority")
	s := young.server("global")
	f.write(f.CA, young.pem())
	f.write(f.Certificate, s.certificate)
	f.write(f.Key, s.key)
	must.NoError(t, certs.Reload())
	must.NoError(t, dial())
}

// Handshakes after a reload use the new certificates, also those of another authority. A reload of
// invalid files changes nothing.
func TestCerts_reload(t *testing.T) {
	t.Parallel()
	old, young := newAuthority(t), newAuthority(t)
	first, second := old.server("global"), young.server("global")
	f := newFiles(t, old.pem(), first)
	certs := f.open()
	peers, public := serveHello(t, certs.Peers()), serveHello(t, certs.Public())
	connects := func(a authority, s signed) bool {
		_, raft := client(t, peers, agent.ServerName("global"), a, &s, 0)
		_, http := client(t, public, "localhost", a, &s, 0)
		must.Eq(t, raft == nil, http == nil)
		return raft == nil
	}
	must.True(t, connects(old, first))
	must.False(t, connects(young, second))

	expires := certs.Expires()
	f.write(f.Certificate, []byte("nothing"))
	must.ErrorContains(t, certs.Reload(), f.Certificate)
	must.Eq(t, expires, certs.Expires())
	must.True(t, connects(old, first))

	f.write(f.CA, young.pem())
	f.write(f.Certificate, second.certificate)
	f.write(f.Key, second.key)
	must.NoError(t, certs.Reload())
	must.True(t, connects(young, second))
	must.False(t, connects(old, first))
}

// The error for an invalid certificate names the file and contains no part of a key.
func TestOpenCerts_errors(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	good, other := ours.server("global"), ours.server("global")
	cases := []struct {
		name   string
		damage func(*files)
		named  func(files) string // the file that the error names
		want   string
	}{
		{"no key", func(f *files) { f.Key = "" }, func(files) string { return "" }, "a certificate and its key"},
		{"no certificate", func(f *files) { f.Certificate = "" }, func(files) string { return "" }, "a certificate and its key"},
		{"a missing key", func(f *files) { must.NoError(f, os.Remove(f.Key)) }, func(f files) string { return f.Key }, "no such file"},
		{"a missing certificate", func(f *files) { f.Certificate += "x" }, func(f files) string { return f.Certificate }, "no such file"},
		{"a missing CA", func(f *files) { f.CA += "x" }, func(f files) string { return f.CA }, "no such file"},
		{"a CA without one", func(f *files) { f.write(f.CA, good.key) }, func(f files) string { return f.CA }, "holds no certificate"},
		{"the key of another certificate", func(f *files) { f.write(f.Key, other.key) }, func(f files) string { return f.Key }, "does not match"},
		{"a broken key", func(f *files) { f.write(f.Key, good.key[10:]) }, func(f files) string { return f.Key }, "PEM data in key input"},
		{"a key for a certificate", func(f *files) { f.write(f.Certificate, good.key) }, func(f files) string { return f.Certificate }, "certificate"},
		{"expired", func(f *files) {
			s := ours.sign(-time.Second, serverUse[:], agent.ServerName("global"))
			f.write(f.Certificate, s.certificate)
			f.write(f.Key, s.key)
		}, func(f files) string { return f.Certificate }, "expired at"},
		{"another CA", func(f *files) { f.write(f.CA, theirs.pem()) }, func(f files) string { return f.CA }, "unknown authority"},
		{"another region", func(f *files) { f.Region = "mars" }, func(f files) string { return f.Certificate }, "server.mars.nodedrain"},
		{"a certificate without the server name", func(f *files) {
			s := ours.sign(time.Hour, serverUse[:], "localhost")
			f.write(f.Certificate, s.certificate)
			f.write(f.Key, s.key)
		}, func(f files) string { return f.Certificate }, "server.global.nodedrain"},
		{"not for clients", func(f *files) {
			s := ours.sign(time.Hour, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, agent.ServerName("global"))
			f.write(f.Certificate, s.certificate)
			f.write(f.Key, s.key)
		}, func(f files) string { return f.Certificate }, "clientAuth"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFiles(t, ours.pem(), good)
			c.damage(&f)
			_, err := agent.OpenCerts(f.CertConfig)
			must.ErrorContains(t, err, c.want)
			must.ErrorContains(t, err, c.named(f))
			for _, key := range [][]byte{good.key, other.key} {
				block, _ := pem.Decode(key)
				must.StrNotContains(t, err.Error(), string(block.Bytes))
				for line := range bytes.Lines(key) {
					must.StrNotContains(t, err.Error(), string(bytes.TrimSpace(line)))
				}
			}
		})
	}
}

// OpenCerts warns about a key that other users can read.
func TestOpenCerts_warnsAboutTheModeOfTheKey(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	f := newFiles(t, ours.pem(), ours.server("global"))
	var out bytes.Buffer
	f.Logger = hclog.New(&hclog.LoggerOptions{Output: &out})
	f.open()
	must.StrNotContains(t, out.String(), "[WARN]")
	must.NoError(t, os.Chmod(f.Key, 0o640))
	f.open()
	must.StrContains(t, out.String(), "other users can read the private key")
	must.StrContains(t, out.String(), f.Key)
}
