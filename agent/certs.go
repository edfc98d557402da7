package agent

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

// CertConfig says where a server's certificates are: files in PEM format. The zero
// value is no TLS at all.
type CertConfig struct {
	// CA holds the authorities that sign certificates of servers and clients. With it
	// servers speak TLS among themselves, and public HTTP demands a client's
	// certificate. Without it the public HTTP of a server with a certificate is TLS,
	// and what servers say to each other is neither secret nor authenticated.
	CA string
	// Certificate holds the server's certificate, with those between it and the
	// authority, if any; Key holds its private key. Both or neither.
	Certificate, Key string
	// Region is the part of the name by which servers know each other; see
	// [ServerName]. Empty is [DefaultRegion].
	Region string
	// Logger is told of what was loaded. Nil discards it.
	Logger hclog.Logger
}

// DefaultRegion is the default of [CertConfig].Region.
const DefaultRegion = "global"

// ServerName is the name that a server's certificate must carry, as a DNS name,
// beside the names of its host: it is what tells servers of a region from anybody
// else who has a certificate of the same authority.
func ServerName(region string) string { return "server." + region + ".nodedrain" }

// Certs are a server's certificates as they are in force now. [Certs.Reload] puts
// renewed ones in their place: connections that are made from then on use them. All
// methods are safe for concurrent use; it owns no goroutine.
type Certs struct {
	config  CertConfig
	current atomic.Pointer[material] // never nil
}

// material is one set of certificates. It is never written to.
type material struct {
	certificate *tls.Certificate
	authorities *x509.CertPool // nil without a CA
}

// OpenCerts loads certificates, and refuses those with which no handshake can
// succeed. The error names the file, and says nothing of what is in a key.
func OpenCerts(c CertConfig) (*Certs, error) {
	if c.Region == "" {
		c.Region = DefaultRegion
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.Certificate == "" || c.Key == "" {
		return nil, errors.New("TLS needs a certificate and its key")
	}
	certs := &Certs{config: c}
	if err := certs.Reload(); err != nil {
		return nil, err
	}
	return certs, nil
}

// Reload loads the files again. After an error, which names the file, the old
// certificates stay in force.
func (c *Certs) Reload() error {
	m, err := c.load(time.Now())
	if err != nil {
		return err
	}
	c.current.Store(m)
	c.config.Logger.Info("certificates are in force", "file", c.config.Certificate, "expires", m.certificate.Leaf.NotAfter)
	return nil
}

// Mutual reports whether there is a CA: whether peers and clients must show
// certificates.
func (c *Certs) Mutual() bool { return c.config.CA != "" }

// Expires is when the server's certificate expires.
func (c *Certs) Expires() time.Time { return c.current.Load().certificate.Leaf.NotAfter }

func (c *Certs) load(now time.Time) (*material, error) {
	certificate, err := os.ReadFile(c.config.Certificate)
	if err != nil {
		return nil, fmt.Errorf("loading the certificate: %w", err)
	}
	key, err := c.readKey()
	if err != nil {
		return nil, fmt.Errorf("loading the certificate's key: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", c.config.Certificate, c.config.Key, err)
	}
	m := &material{certificate: &pair}
	if leaf := pair.Leaf; now.After(leaf.NotAfter) {
		return nil, fmt.Errorf("certificate %s expired at %s: renew it", c.config.Certificate, leaf.NotAfter.Format(time.RFC3339))
	}
	if !c.Mutual() {
		return m, nil
	}
	authorities, err := os.ReadFile(c.config.CA)
	if err != nil {
		return nil, fmt.Errorf("loading the CA: %w", err)
	}
	m.authorities = x509.NewCertPool()
	if !m.authorities.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("CA %s holds no certificate in PEM format", c.config.CA)
	}
	return m, c.check(m, now)
}

// readKey reads the key, and warns if others may.
func (c *Certs) readKey() ([]byte, error) {
	if info, err := os.Stat(c.config.Key); err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		c.config.Logger.Warn("others can read the private key: make it 0600", "file", c.config.Key, "mode", info.Mode().Perm())
	}
	return os.ReadFile(c.config.Key)
}

// check refuses a certificate with which other servers would not talk: better now
// than when they try.
func (c *Certs) check(m *material, now time.Time) error {
	if name := ServerName(c.config.Region); !slices.Contains(m.certificate.Leaf.DNSNames, name) {
		return fmt.Errorf("certificate %s does not name %s, as that of a server of region %s must", c.config.Certificate, name, c.config.Region)
	}
	between := x509.NewCertPool()
	for _, raw := range m.certificate.Certificate[1:] {
		certificate, err := x509.ParseCertificate(raw)
		if err != nil {
			return fmt.Errorf("certificate %s: one of the certificates below the first: %w", c.config.Certificate, err)
		}
		between.AddCert(certificate)
	}
	for _, use := range []struct {
		usage x509.ExtKeyUsage
		what  string
	}{{x509.ExtKeyUsageServerAuth, "a server (serverAuth)"}, {x509.ExtKeyUsageClientAuth, "a client, which a server is to the others (clientAuth)"}} {
		_, err := m.certificate.Leaf.Verify(x509.VerifyOptions{
			Roots: m.authorities, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{use.usage},
		})
		if err != nil {
			return fmt.Errorf("certificate %s, as %s of CA %s: %w", c.config.Certificate, use.what, c.config.CA, err)
		}
	}
	return nil
}

// Peers is how servers speak to each other, by raft and by HTTP, in both directions:
// TLS 1.3, and only with who shows a certificate of the CA that carries the name of a
// server of the region. It returns nil, which is no TLS, without a CA.
func (c *Certs) Peers() *tls.Config {
	if !c.Mutual() {
		return nil
	}
	config := c.fresh(func(m *material) *tls.Config {
		listen := m.listen(tls.VersionTLS13)
		listen.VerifyConnection = c.isServer
		return listen
	})
	// A listener asks GetConfigForClient for all it does, so that what follows is for
	// who dials. There crypto/tls would verify by the CA of today for good; we do it by
	// the CA that is in force.
	config.ServerName = ServerName(c.config.Region)
	config.InsecureSkipVerify = true
	config.VerifyConnection = c.verifyServer
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.current.Load().certificate, nil }
	return config
}

// Public is how a server answers clients over HTTP: TLS 1.2 or newer, and if there
// is a CA only to who shows a certificate of it.
func (c *Certs) Public() *tls.Config {
	return c.fresh(func(m *material) *tls.Config {
		config := m.listen(tls.VersionTLS12)
		config.NextProtos = []string{"h2", "http/1.1"}
		return config
	})
}

// fresh is a config for listeners that outlives every reload: each handshake asks for
// the certificates in force.
func (c *Certs) fresh(build func(*material) *tls.Config) *tls.Config {
	config := build(c.current.Load())
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return build(c.current.Load()), nil }
	return config
}

// listen is how a listener shakes hands. Sessions are not resumed: one that was
// begun under an authority would outlive its removal.
func (m *material) listen(version uint16) *tls.Config {
	config := &tls.Config{MinVersion: version, Certificates: []tls.Certificate{*m.certificate}, SessionTicketsDisabled: true}
	if m.authorities != nil {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, m.authorities
	}
	return config
}

// errNoServer says that who is at the other end has a good certificate and is no
// server.
var errNoServer = errors.New("its certificate is not that of a server of this region")

// isServer refuses who is at the other end if their certificate, which has been
// verified by now, is not that of a server. A wildcard is nobody's name here: who
// asks for a certificate for all hosts of a region asks for no server's right.
func (c *Certs) isServer(state tls.ConnectionState) error {
	name := ServerName(c.config.Region)
	if len(state.PeerCertificates) == 0 || !slices.Contains(state.PeerCertificates[0].DNSNames, name) {
		return fmt.Errorf("%w: it does not name %s", errNoServer, name)
	}
	return nil
}

// verifyServer verifies the certificate of a server that was dialled.
func (c *Certs) verifyServer(state tls.ConnectionState) error {
	if err := c.isServer(state); err != nil {
		return err
	}
	between := x509.NewCertPool()
	for _, certificate := range state.PeerCertificates[1:] {
		between.AddCert(certificate)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: c.current.Load().authorities, Intermediates: between})
	if err != nil {
		return fmt.Errorf("the certificate of a server, by CA %s: %w", c.config.CA, err)
	}
	return nil
}
