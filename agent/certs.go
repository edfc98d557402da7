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

// CertConfig names a server's certificate files, in PEM format. The zero value is no TLS at all.
type CertConfig struct {
	// CA holds the authorities that sign certificates of servers and clients. With it servers speak
	// TLS among themselves, and public HTTP demands a client's certificate. Without it the public
	// HTTP of a server with a certificate is TLS, and the traffic between servers is neither secret
	// nor authenticated.
	CA string
	// Certificate holds the server's certificate, with those between it and the
	// authority, if any; Key holds its private key. Both or neither.
	Certificate, Key string
	// Region is the part of the name by which servers know each other; see
	// [ServerName]. Empty is [DefaultRegion].
	Region string
	// Logger logs the certificates that were loaded. Nil logs nothing.
	Logger hclog.Logger
}

// DefaultRegion is the default of [CertConfig].Region.
const DefaultRegion = "global"

// ServerName is the DNS name that a server's certificate must carry, beside the names of its host.
// It separates the servers of a region from other holders of a certificate of the same authority.
func ServerName(region string) string { return "server." + region + ".nodedrain" }

// Certs are a server's present certificates. [Certs.Reload] replaces them by renewed ones, which
// later connections use. All methods are safe for concurrent use; it owns no goroutine.
type Certs struct {
	config  CertConfig
	current atomic.Pointer[material] // never nil
}

// material is one set of certificates. It is never written to.
type material struct {
	certificate *tls.Certificate
	authorities *x509.CertPool // nil without a CA
}

// OpenCerts loads certificates, and refuses those with which no handshake can succeed. The error
// names the file, and holds nothing of a key.
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
	c.config.Logger.Info("certificates loaded", "file", c.config.Certificate, "expires", m.certificate.Leaf.NotAfter)
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
		c.config.Logger.Warn("other users can read the private key: set its mode to 0600", "file", c.config.Key, "mode", info.Mode().Perm())
	}
	return os.ReadFile(c.config.Key)
}

// check refuses a certificate with which other servers would not talk: better now
// than when they try.
func (c *Certs) check(m *material, now time.Time) error {
	if name := ServerName(c.config.Region); !slices.Contains(m.certificate.Leaf.DNSNames, name) {
		return fmt.Errorf("certificate %s does not name %s, which servers of region %s need", c.config.Certificate, name, c.config.Region)
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

// Peers is the TLS of servers among themselves, for raft and for HTTP, in both directions: TLS 1.3,
// and only with a certificate of the CA that carries the server name of the region. It returns nil,
// which is no TLS, without a CA.
func (c *Certs) Peers() *tls.Config {
	if !c.Mutual() {
		return nil
	}
	config := c.fresh(func(m *material) *tls.Config {
		listen := m.listen(tls.VersionTLS13)
		listen.VerifyConnection = c.isServer
		return listen
	})
	// A listener takes all its settings from GetConfigForClient, so the following settings are for
	// dialing. crypto/tls would always verify by the CA of today; this function verifies by the
	// present CA.
	config.ServerName = ServerName(c.config.Region)
	config.InsecureSkipVerify = true
	config.VerifyConnection = c.verifyServer
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.current.Load().certificate, nil }
	return config
}

// Public is the TLS of the API: TLS 1.2 or newer, and with a CA only for clients with a certificate
// of it.
func (c *Certs) Public() *tls.Config {
	return c.fresh(func(m *material) *tls.Config {
		config := m.listen(tls.VersionTLS12)
		config.NextProtos = []string{"h2", "http/1.1"}
		return config
	})
}

// fresh is a config for listeners that survives every reload: each handshake reads the present
// certificates.
func (c *Certs) fresh(build func(*material) *tls.Config) *tls.Config {
	config := build(c.current.Load())
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return build(c.current.Load()), nil }
	return config
}

// listen is the TLS config of a listener. Sessions are not resumed: a session of a removed
// authority would survive the removal.
func (m *material) listen(version uint16) *tls.Config {
	config := &tls.Config{MinVersion: version, Certificates: []tls.Certificate{*m.certificate}, SessionTicketsDisabled: true}
	if m.authorities != nil {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, m.authorities
	}
	return config
}

// errNoServer: the peer has a valid certificate, which is not a server's.
var errNoServer = errors.New("its certificate is not that of a server of this region")

// isServer refuses a peer whose verified certificate is not that of a server. A wildcard does not
// match the server name: a certificate for all hosts of a region does not make a server.
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
