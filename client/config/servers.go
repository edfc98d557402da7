package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
)

func (b *servers) read(r *reader) Servers {
	s := Servers{
		CAFile: r.path("ca_file", b.CAFile), CertFile: r.path("cert_file", b.CertFile), KeyFile: r.path("key_file", b.KeyFile),
		ServerName: r.text(b.ServerName, ""),
	}
	secure := false
	if decode(r, b.Addresses, &s.Addresses) {
		if len(s.Addresses) == 0 {
			r.refuse(b.Addresses, "addresses", "it must name at least one server")
		}
		for _, address := range s.Addresses {
			withTLS, err := checkAddress(address)
			if err != nil {
				r.refuse(b.Addresses, "addresses", err.Error())
			}
			secure = secure || withTLS
		}
	}
	switch {
	case secure && s.CAFile == "":
		r.refuse(b.Addresses, "addresses", "an address with https needs ca_file: the client obeys only servers whose certificate it can verify")
	case (s.CertFile == "") != (s.KeyFile == ""):
		r.refuse(b.Addresses, "cert_file", "set both cert_file and key_file, or neither")
	}
	if path := r.path("token_file", b.TokenFile); path != "" && !r.found.HasErrors() {
		token, err := ReadToken(path)
		if err != nil {
			r.refuse(b.TokenFile, "token_file", err.Error())
		}
		s.Token, s.TokenFile = token, path
	}
	return s
}

// checkAddress checks the address of a server. Without TLS any process on the way could give orders
// to the client, so such an address must be one of the loopback interface.
func checkAddress(address string) (secure bool, err error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return false, fmt.Errorf("%q is not a URL, such as \"https://10.0.0.1:4646\"", address)
	case u.Scheme != "http" && u.Scheme != "https":
		return false, fmt.Errorf("%q must begin with http:// or https://", address)
	case u.Hostname() == "":
		return false, fmt.Errorf("%q has no host", address)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return false, fmt.Errorf("%q may have a scheme, a host, a port and a path", address)
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return false, fmt.Errorf("%q has no TLS: the client speaks without TLS to %s and to no other host", address, "127.0.0.1, ::1 or localhost")
	}
	return u.Scheme == "https", nil
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// maxToken bounds the token file, in bytes.
const maxToken = 4096

// ReadToken reads the token of a token file: the first line of a file that other users cannot use.
// The error names the file.
func ReadToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxToken {
		return "", fmt.Errorf("%s must be a file of at most %d bytes", path, maxToken)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return "", fmt.Errorf("every user can use %s (mode %04o): set its mode to 0600", path, info.Mode().Perm())
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token, _, _ := strings.Cut(strings.TrimSpace(string(content)), "\n")
	if token = strings.TrimSpace(token); token == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return token, nil
}
