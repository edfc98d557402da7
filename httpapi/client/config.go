package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Config holds the servers' addresses and the credentials.
type Config struct {
	// Address is the URL of any server's API; a bare host and port is taken for http. It may be
	// several, separated by commas: the client uses the first one that answers. Empty is
	// [DefaultAddress].
	Address string
	// Token authenticates the requests; empty sends none.
	Token string
	// Process is the id of the process of a node's client; empty sends none.
	Process string
	// Region and Namespace are sent with every request, unless empty.
	Region    string
	Namespace string
	// TLS is read if an address begins with https.
	TLS TLS
	// Transport sends the requests whose answers are no streams of both sides; nil is HTTP with TLS. Tests set it.
	Transport http.RoundTripper
}

// DefaultAddress is where a server listens that runs on this machine.
const DefaultAddress = "http://127.0.0.1:4646"

// The environment variables that [FromEnv] reads. They are those of the compatible
// command, so that one setting serves both.
const (
	EnvAddress       = "NOMAD_ADDR"
	EnvToken         = "NOMAD_TOKEN"
	EnvRegion        = "NOMAD_REGION"
	EnvNamespace     = "NOMAD_NAMESPACE"
	EnvCACert        = "NOMAD_CACERT"
	EnvCAPath        = "NOMAD_CAPATH"
	EnvClientCert    = "NOMAD_CLIENT_CERT"
	EnvClientKey     = "NOMAD_CLIENT_KEY"
	EnvTLSServerName = "NOMAD_TLS_SERVER_NAME"
	EnvSkipVerify    = "NOMAD_SKIP_VERIFY"
)

// FromEnv returns the configuration of environment variables, read by getenv, which is os.Getenv
// except in tests. The error names the variable that cannot be read.
func FromEnv(getenv func(string) string) (Config, error) {
	c := Config{
		Address: getenv(EnvAddress), Token: getenv(EnvToken), Region: getenv(EnvRegion), Namespace: getenv(EnvNamespace),
		TLS: TLS{
			CACert: getenv(EnvCACert), CAPath: getenv(EnvCAPath),
			ClientCert: getenv(EnvClientCert), ClientKey: getenv(EnvClientKey),
			ServerName: getenv(EnvTLSServerName),
		},
	}
	if v := getenv(EnvSkipVerify); v != "" {
		skip, err := strconv.ParseBool(v)
		if err != nil {
			return Config{}, fmt.Errorf("%s is %q and must be true or false", EnvSkipVerify, v)
		}
		c.TLS.SkipVerify = skip
	}
	return c, nil
}

// Addresses returns the items of Address, or the default. The list is never empty.
func (c Config) Addresses() (list []string) {
	for address := range strings.SplitSeq(c.Address, ",") {
		if address = strings.TrimSpace(address); address != "" {
			list = append(list, address)
		}
	}
	if len(list) == 0 {
		return []string{DefaultAddress}
	}
	return list
}

// bases returns the addresses as URLs.
func (c Config) bases() (list []*url.URL, err error) {
	for _, address := range c.Addresses() {
		u, err := base(address)
		if err != nil {
			return nil, err
		}
		list = append(list, u)
	}
	return list, nil
}

func base(address string) (*url.URL, error) {
	full := address
	if !strings.Contains(address, "://") {
		full = "http://" + address
	}
	u, err := url.Parse(full)
	switch {
	case err != nil:
		return nil, fmt.Errorf("invalid address '%s': %w", address, errors.Unwrap(err))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("invalid address '%s': it must begin with http:// or https://", address)
	case u.Host == "":
		return nil, fmt.Errorf("invalid address '%s': it names no host", address)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}
