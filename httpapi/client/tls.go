package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// TLS holds the trusted authorities and the client's certificate. All of it may be left empty.
type TLS struct {
	// CACert is a file of PEM certificates of authorities, CAPath a folder of such files;
	// CACert wins. Without them it is the system's that are trusted.
	CACert, CAPath string
	// ClientCert and ClientKey are PEM files of the client's certificate: both or none.
	ClientCert, ClientKey string
	// ServerName is the name that the server's certificate must hold, rather than that of
	// the address.
	ServerName string
	// SkipVerify trusts every server. It is for trying things out.
	SkipVerify bool
}

// load reads the files.
func (t TLS) load() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.SkipVerify}
	roots, err := t.authorities()
	if err != nil {
		return nil, err
	}
	c.RootCAs = roots
	switch {
	case t.ClientCert == "" && t.ClientKey == "":
		return c, nil
	case t.ClientCert == "" || t.ClientKey == "":
		return nil, errors.New("a client certificate needs its key, and the key its certificate")
	}
	pair, err := tls.LoadX509KeyPair(t.ClientCert, t.ClientKey)
	if err != nil {
		return nil, fmt.Errorf("loading the client certificate: %w", err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// authorities are the trusted authorities, or nil for those of the system.
func (t TLS) authorities() (*x509.CertPool, error) {
	files := []string{t.CACert}
	switch {
	case t.CACert == "" && t.CAPath == "":
		return nil, nil
	case t.CACert == "":
		entries, err := os.ReadDir(t.CAPath)
		if err != nil {
			return nil, fmt.Errorf("reading the CA certificates: %w", err)
		}
		files = nil
		for _, e := range entries {
			if !e.IsDir() {
				files = append(files, filepath.Join(t.CAPath, e.Name()))
			}
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("reading the CA certificates: no file is in %s", t.CAPath)
		}
	}
	pool := x509.NewCertPool()
	for _, file := range files {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the CA certificates: %w", err)
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading the CA certificates: no certificate is in %s", file)
		}
	}
	return pool, nil
}
