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

	"github.com/seed-f9cf0b39/nodedrain/agent"
)

// authority signs certificates, in memory.
type authority struct {
	*testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// signed is a certificate and its key.
type signed struct{ certificate, key []byte }

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.NoError(t, err)
	return key
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{T: t, key: newKey(t)}
	a.certificate = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test's authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, a.key.Public(), a.key)
	must.NoError(t, err)
	a.certificate, err = x509.ParseCertificate(raw)
	must.NoError(t, err)
	return a
}

func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// anyUse is the key usage of a server's certificate.
var anyUse = [2]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}

// sign signs a certificate that is valid for that long from now.
func (a authority) sign(good time.Duration, uses []x509.ExtKeyUsage, names ...string) signed {
	a.Helper()
	key := newKey(a.T)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	must.NoError(a, err)
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, DNSNames: names, ExtKeyUsage: uses,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(good), KeyUsage: x509.KeyUsageDigitalSignature,
	}, a.certificate, key.Public(), a.key)
	must.NoError(a, err)
	encoded, err := x509.MarshalECPrivateKey(key)
	must.NoError(a, err)
	return signed{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}),
	}
}

// server signs a certificate of a server of the region.
func (a authority) server(region string) signed {
	return a.sign(time.Hour, anyUse[:], agent.ServerName(region), "localhost")
}

// files are the files of a server, which a test may write again.
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
	certs, err := agent.OpenCerts(f.CertConfig)
	must.NoError(f, err)
	return certs
}

// answer accepts connections until the test ends, shakes hands, and writes "hello" to the accepted
// ones.
func answer(t *testing.T, config *tls.Config) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
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

// greet connects and returns the greeting. With TLS 1.3 a client learns of a refusal only when it
// reads.
func greet(conn net.Conn, err error) (string, error) {
	if err != nil {
		return "", err
	}
	said, err := io.ReadAll(conn)
	return string(said), errors.Join(err, conn.Close())
}

// client dials with a certificate, or none.
func client(t *testing.T, address, name string, roots authority, s *signed, version uint16) (string, error) {
	t.Helper()
	config := &tls.Config{ServerName: name, RootCAs: x509.NewCertPool(), MaxVersion: version}
	config.RootCAs.AddCert(roots.certificate)
	if s != nil {
		pair, err := tls.X509KeyPair(s.certificate, s.key)
		must.NoError(t, err)
		// Not Certificates: a client with that field sends only certificates that the server says
		// it accepts, and an attacker could send others.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address)
	return greet(conn, err)
}

// Each listener accepts and refuses the right certificates.
func TestCerts_handshakes(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	clientUse := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	server, elsewhere, stranger := ours.server("global"), ours.server("mars"), theirs.server("global")
	user := ours.sign(time.Hour, clientUse, "client.global.nodedrain")
	expired := ours.sign(-time.Minute, anyUse[:], agent.ServerName("global"))
	notForClients := ours.sign(time.Hour, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, agent.ServerName("global"))
	wildcard := ours.sign(time.Hour, clientUse, "*.nodedrain", "*.global.nodedrain")

	mutual := newFiles(t, ours.pem(), server).open()
	oneSided := newFiles(t, nil, server).open()
	must.Nil(t, oneSided.Peers())
	peers, public, plain := answer(t, mutual.Peers()), answer(t, mutual.Public()), answer(t, oneSided.Public())

	cases := []struct {
		name                  string
		who                   *signed
		peers, public, onlyTo bool // onlyTo: a server without a CA
	}{
		{"a server", &server, true, true, true},
		{"a server of another region", &elsewhere, false, true, true},
		{"a client", &user, false, true, true},
		{"a client with a wildcard that covers the servers", &wildcard, false, true, true},
		{"no certificate", nil, false, false, true},
		{"another authority's server", &stranger, false, false, true},
		{"a server whose certificate has expired", &expired, false, false, true},
		{"a certificate that is not for clients", &notForClients, false, false, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, door := range []struct {
				what, address, name string
				opens               bool
			}{
				{"peers", peers, agent.ServerName("global"), c.peers},
				{"public", public, "localhost", c.public},
				{"public without a CA", plain, "localhost", c.onlyTo},
			} {
				said, err := client(t, door.address, door.name, ours, c.who, 0)
				must.Eq(t, door.opens, err == nil, must.Sprintf("%s: %v", door.what, err))
				must.Eq(t, door.opens, said == "hello", must.Sprint(door.what))
			}
		})
	}
}

// Servers among themselves speak nothing older than TLS 1.3, HTTP nothing older than 1.2.
func TestCerts_versions(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	server := ours.server("global")
	certs := newFiles(t, ours.pem(), server).open()
	peers, public := answer(t, certs.Peers()), answer(t, certs.Public())
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
		return greet(conn, err)
	}
	one, two := newFiles(t, ours.pem(), ours.server("global")).open(), newFiles(t, ours.pem(), ours.server("global")).open()
	said, err := dial(one, answer(t, two.Peers()))
	must.NoError(t, err)
	must.Eq(t, "hello", said)

	// Impostors, with certificates of the same authority that are not a server's.
	for _, c := range []struct{ name, want string }{
		{"localhost", "it does not name " + agent.ServerName("global")},
		{"*.global.nodedrain", "its certificate is not that of a server of this region"},
	} {
		user := ours.sign(time.Hour, anyUse[:], c.name)
		pair, err := tls.X509KeyPair(user.certificate, user.key)
		must.NoError(t, err)
		_, err = dial(one, answer(t, &tls.Config{Certificates: []tls.Certificate{pair}}))
		must.ErrorContains(t, err, c.want)
	}

	strangers := newFiles(t, theirs.pem(), theirs.server("global")).open()
	_, err = dial(one, answer(t, strangers.Peers()))
	must.ErrorContains(t, err, "unknown authority")

	// Certificates for clients only, expired ones and those of another authority are refused.
	for _, s := range []signed{
		ours.sign(time.Hour, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, agent.ServerName("global")),
		ours.sign(-time.Minute, anyUse[:], agent.ServerName("global")),
	} {
		pair, err := tls.X509KeyPair(s.certificate, s.key)
		must.NoError(t, err)
		_, err = dial(one, answer(t, &tls.Config{Certificates: []tls.Certificate{pair}}))
		must.ErrorContains(t, err, "the certificate of a server, by CA")
	}
}

// A dialing server uses renewed certificates, of another authority too, with its first config.
func TestCerts_dialAfterReload(t *testing.T) {
	t.Parallel()
	old, young := newAuthority(t), newAuthority(t)
	f := newFiles(t, old.pem(), old.server("global"))
	certs := f.open()
	config := certs.Peers()
	moved := newFiles(t, young.pem(), young.server("global")).open()
	address := answer(t, moved.Peers())
	dial := func() error {
		conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address)
		_, err = greet(conn, err)
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

// Renewed certificates loaded from the next handshake on, another authority
// too, and files that cannot work change nothing.
func TestCerts_reload(t *testing.T) {
	t.Parallel()
	old, young := newAuthority(t), newAuthority(t)
	first, second := old.server("global"), young.server("global")
	f := newFiles(t, old.pem(), first)
	certs := f.open()
	peers, public := answer(t, certs.Peers()), answer(t, certs.Public())
	speaks := func(a authority, s signed) bool {
		_, raft := client(t, peers, agent.ServerName("global"), a, &s, 0)
		_, http := client(t, public, "localhost", a, &s, 0)
		must.Eq(t, raft == nil, http == nil)
		return raft == nil
	}
	must.True(t, speaks(old, first))
	must.False(t, speaks(young, second))

	expires := certs.Expires()
	f.write(f.Certificate, []byte("nothing"))
	must.ErrorContains(t, certs.Reload(), f.Certificate)
	must.Eq(t, expires, certs.Expires())
	must.True(t, speaks(old, first))

	f.write(f.CA, young.pem())
	f.write(f.Certificate, second.certificate)
	f.write(f.Key, second.key)
	must.NoError(t, certs.Reload())
	must.True(t, speaks(young, second))
	must.False(t, speaks(old, first))
}

// A bad certificate is refused with the file's name, and with nothing of a key.
func TestOpenCerts_errors(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	good, other := ours.server("global"), ours.server("global")
	cases := []struct {
		name   string
		spoil  func(*files)
		blames func(files) string
		want   string
	}{
		{"no key", func(f *files) { f.Key = "" }, func(files) string { return "" }, "a certificate and its key"},
		{"no certificate", func(f *files) { f.Certificate = "" }, func(files) string { return "" }, "a certificate and its key"},
		{"a missing key", func(f *files) { must.NoError(f, os.Remove(f.Key)) }, func(f files) string { return f.Key }, "no such file"},
		{"a missing certificate", func(f *files) { f.Certificate += "x" }, func(f files) string { return f.Certificate }, "no such file"},
		{"a missing CA", func(f *files) { f.CA += "x" }, func(f files) string { return f.CA }, "no such file"},
		{"a CA without one", func(f *files) { f.write(f.CA, good.key) }, func(f files) string { return f.CA }, "holds no certificate"},
		{"another's key", func(f *files) { f.write(f.Key, other.key) }, func(f files) string { return f.Key }, "does not match"},
		{"a broken key", func(f *files) { f.write(f.Key, good.key[10:]) }, func(f files) string { return f.Key }, "PEM data in key input"},
		{"a key for a certificate", func(f *files) { f.write(f.Certificate, good.key) }, func(f files) string { return f.Certificate }, "certificate"},
		{"expired", func(f *files) {
			s := ours.sign(-time.Second, anyUse[:], agent.ServerName("global"))
			f.write(f.Certificate, s.certificate)
			f.write(f.Key, s.key)
		}, func(f files) string { return f.Certificate }, "expired at"},
		{"another CA", func(f *files) { f.write(f.CA, theirs.pem()) }, func(f files) string { return f.CA }, "unknown authority"},
		{"another region", func(f *files) { f.Region = "mars" }, func(f files) string { return f.Certificate }, "server.mars.nodedrain"},
		{"no server's name", func(f *files) {
			s := ours.sign(time.Hour, anyUse[:], "localhost")
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
			c.spoil(&f)
			_, err := agent.OpenCerts(f.CertConfig)
			must.ErrorContains(t, err, c.want)
			must.ErrorContains(t, err, c.blames(f))
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

// A key that others can read is warned about.
func TestOpenCerts_warnsOfModes(t *testing.T) {
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
