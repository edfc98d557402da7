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

// CertConfig names a server's certificate files, in PEM format. [OpenCerts] refuses the zero value: a
// server without TLS has no [Certs].
type CertConfig struct {
	// CA is the file with the authorities that sign certificates of servers and clients. With a CA,
	// servers use mutual TLS among themselves, and the API demands a certificate of each client.
	// Without one, the API uses TLS without client certificates, and servers need a [PeerSecret].
	CA string
	// Certificate is the file with the server's certificate, followed by its intermediate
	// certificates. Key is the file with its private key. Both are required.
	Certificate, Key string
	// Region is a part of the DNS name by which servers identify each other: see [ServerName].
	// Empty is [DefaultRegion].
	Region string
	// Logger receives the loaded certificates and warnings. Nil discards them.
	Logger hclog.Logger
}

// DefaultRegion is the default of [CertConfig].Region.
const DefaultRegion = "global"

// ServerName is the DNS name that a server's certificate must carry, beside the names of its host.
// It separates the servers of a region from other holders of a certificate of the same authority.
func ServerName(region string) string { return "server." + region + ".nodedrain" }

// Certs are a server's current certificates. [Certs.Reload] replaces them, and later connections use
// the new ones. All methods are safe for concurrent use. Certs owns no goroutine.
type Certs struct {
	config  CertConfig
	current atomic.Pointer[certSet] // never nil
}

// certSet is one set of loaded certificates. It is immutable.
type certSet struct {
	certificate *tls.Certificate
	authorities *x509.CertPool // nil without a CA
}

// OpenCerts loads certificates. It returns an error if no handshake can succeed with them. The error
// names the file and contains no part of a key.
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

// Reload loads the files again. After an error, which names the file, the old certificates stay in
// use.
func (c *Certs) Reload() error {
	m, err := c.load(time.Now())
	if err != nil {
		return err
	}
	c.current.Store(m)
	c.config.Logger.Info("certificates loaded", "file", c.config.Certificate, "expires", m.certificate.Leaf.NotAfter)
	return nil
}

// Mutual reports whether peers and clients must present certificates: whether there is a CA.
func (c *Certs) Mutual() bool { return c.config.CA != "" }

// Expires returns the time at which the server's certificate expires.
func (c *Certs) Expires() time.Time { return c.current.Load().certificate.Leaf.NotAfter }

func (c *Certs) load(now time.Time) (*certSet, error) {
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
	m := &certSet{certificate: &pair}
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

// readKey reads the key. It warns if other users can read the file.
func (c *Certs) readKey() ([]byte, error) {
	if info, err := os.Stat(c.config.Key); err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		c.config.Logger.Warn("other users can read the private key: set its mode to 0600", "file", c.config.Key, "mode", info.Mode().Perm())
	}
	return os.ReadFile(c.config.Key)
}

// check returns an error if other servers would refuse the certificate. An error at the start is
// easier to find than a failed handshake.
func (c *Certs) check(m *certSet, now time.Time) error {
	if name := ServerName(c.config.Region); !slices.Contains(m.certificate.Leaf.DNSNames, name) {
		return fmt.Errorf("certificate %s does not name %s, which servers of region %s need", c.config.Certificate, name, c.config.Region)
	}
	intermediates := x509.NewCertPool()
	for _, raw := range m.certificate.Certificate[1:] {
		certificate, err := x509.ParseCertificate(raw)
		if err != nil {
			return fmt.Errorf("certificate %s: one of its intermediate certificates: %w", c.config.Certificate, err)
		}
		intermediates.AddCert(certificate)
	}
	for _, use := range []struct {
		usage x509.ExtKeyUsage
		what  string
	}{{x509.ExtKeyUsageServerAuth, "a server (serverAuth)"}, {x509.ExtKeyUsageClientAuth, "a client of other servers (clientAuth)"}} {
		_, err := m.certificate.Leaf.Verify(x509.VerifyOptions{
			Roots: m.authorities, Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{use.usage},
		})
		if err != nil {
			return fmt.Errorf("certificate %s, as %s of CA %s: %w", c.config.Certificate, use.what, c.config.CA, err)
		}
	}
	return nil
}

// Peers returns the TLS configuration between servers, for raft and HTTP, for both sides of a
// connection. It requires TLS 1.3 and a certificate of the CA that has the server name of the region.
// Without a CA it returns nil.
func (c *Certs) Peers() *tls.Config {
	if !c.Mutual() {
		return nil
	}
	config := c.reloadable(func(m *certSet) *tls.Config {
		listen := m.listen(tls.VersionTLS13)
		listen.VerifyConnection = c.isServer
		return listen
	})
	// A listener takes all its settings from GetConfigForClient, so the following settings are for
	// dialing. With RootCAs, crypto/tls would verify by the CA that was loaded first. verifyServer
	// verifies by the CA that is loaded now.
	config.ServerName = ServerName(c.config.Region)
	config.InsecureSkipVerify = true
	config.VerifyConnection = c.verifyServer
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.current.Load().certificate, nil }
	return config
}

// Public returns the TLS configuration of the API. It requires TLS 1.2 or newer and, if there is a
// CA, a certificate of the CA from each client.
func (c *Certs) Public() *tls.Config {
	return c.reloadable(func(m *certSet) *tls.Config {
		config := m.listen(tls.VersionTLS12)
		config.NextProtos = []string{"h2", "http/1.1"}
		return config
	})
}

// reloadable returns a configuration for listeners. Each handshake uses the certificates that are
// loaded at that time.
func (c *Certs) reloadable(build func(*certSet) *tls.Config) *tls.Config {
	config := build(c.current.Load())
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return build(c.current.Load()), nil }
	return config
}

// listen returns the TLS configuration of a listener. Sessions are not resumed: a client of a removed
// authority could resume its session.
func (m *certSet) listen(version uint16) *tls.Config {
	config := &tls.Config{MinVersion: version, Certificates: []tls.Certificate{*m.certificate}, SessionTicketsDisabled: true}
	if m.authorities != nil {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, m.authorities
	}
	return config
}

// errNotServer means that the peer's certificate is valid but is not a server's.
var errNotServer = errors.New("its certificate is not that of a server of this region")

// isServer returns an error if the peer's verified certificate is not a server's. A wildcard does not
// match the server name: a certificate for all hosts of a region must not make its holder a server.
func (c *Certs) isServer(state tls.ConnectionState) error {
	name := ServerName(c.config.Region)
	if len(state.PeerCertificates) == 0 || !slices.Contains(state.PeerCertificates[0].DNSNames, name) {
		return fmt.Errorf("%w: it does not name %s", errNotServer, name)
	}
	return nil
}

// verifyServer verifies the certificate of the server that this server has dialed.
func (c *Certs) verifyServer(state tls.ConnectionState) error {
	if err := c.isServer(state); err != nil {
		return err
	}
	intermediates := x509.NewCertPool()
	for _, certificate := range state.PeerCertificates[1:] {
		intermediates.AddCert(certificate)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: c.current.Load().authorities, Intermediates: intermediates})
	if err != nil {
		return fmt.Errorf("the certificate of a server, by CA %s: %w", c.config.CA, err)
	}
	return nil
}
