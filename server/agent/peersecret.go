package agent

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"strings"
	"syscall"
)

// PeerSecret is the secret with which servers on one machine authenticate each other without
// certificates: see [Config].PeerSecret. It never prints its content. It is immutable.
//
// Servers use TLS with keys that are derived from the secret. Each side proves that it has the
// secret, and sends nothing from which the other side could learn it. The key of a listener depends
// on its address: a program at another address cannot pass the handshake on to a server. Every program
// that connects can compare guesses with the public key of the listener. So the secret must be random.
type PeerSecret struct {
	// text is a pointer because fmt prints unexported fields of other structs, but does not follow a
	// pointer there.
	text *string
}

// Bounds of a peer secret, in bytes.
const (
	MinPeerSecret = 32
	MaxPeerSecret = 4096
)

// minDistinct is the smallest number of different bytes in a peer secret. Fewer show a placeholder,
// such as a line of zeros. A random secret of 32 hexadecimal digits has fewer with a probability
// below 4e-8, a longer one with a smaller one.
const minDistinct = 8

// NewPeerSecret returns a secret with this text. Space around the text does not belong to it. All
// servers of a cluster need the same text. It must be random: use the output of
// "openssl rand -hex 32". NewPeerSecret refuses a text with fewer than eight different bytes. It
// cannot recognize other texts that are not random.
func NewPeerSecret(text string) (*PeerSecret, error) {
	text = strings.TrimSpace(text)
	switch {
	case len(text) < MinPeerSecret:
		return nil, fmt.Errorf("the secret has %d bytes and must have at least %d: create it with \"openssl rand -hex 32\"", len(text), MinPeerSecret)
	case len(text) > MaxPeerSecret:
		return nil, fmt.Errorf("the secret must have at most %d bytes: create it with \"openssl rand -hex 32\"", MaxPeerSecret)
	case strings.ContainsAny(text, "\r\n"):
		return nil, errors.New("the secret must be one line: create it with \"openssl rand -hex 32\"")
	case distinct(text) < minDistinct:
		return nil, fmt.Errorf("the secret has fewer than %d different bytes, so it is not random: create it with \"openssl rand -hex 32\"", minDistinct)
	}
	return &PeerSecret{&text}, nil
}

// distinct returns the number of different bytes in a text.
func distinct(text string) int {
	bytes := make(map[byte]struct{})
	for i := range len(text) {
		bytes[text[i]] = struct{}{}
	}
	return len(bytes)
}

// ReadPeerSecret reads a secret from a file. The path may be a symbolic link. The regular file that
// it leads to must belong to the user of this process, and its mode must be 0600 or 0400. The error
// names the file and contains no part of the secret.
func ReadPeerSecret(path string) (*PeerSecret, error) {
	// Without O_NONBLOCK a FIFO would stop the start of the server until a program writes to it.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("reading the peer secret: %w", err)
	}
	defer file.Close()
	// The opened file is checked, so no other file can take its place before it is read.
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading the peer secret: %w", err)
	}
	if err := checkPrivate(info); err != nil {
		return nil, fmt.Errorf("peer secret file %s: %w", path, err)
	}
	text, err := io.ReadAll(io.LimitReader(file, 2*MaxPeerSecret))
	if err != nil {
		return nil, fmt.Errorf("reading the peer secret: %w", err)
	}
	secret, err := NewPeerSecret(string(text))
	if err != nil {
		return nil, fmt.Errorf("peer secret file %s: %w", path, err)
	}
	return secret, nil
}

// Format writes "[secret]" for every verb.
func (s *PeerSecret) Format(f fmt.State, _ rune) { fmt.Fprint(f, "[secret]") }

// MarshalText returns "[secret]".
func (s *PeerSecret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// Roles of derived keys. A listener adds its address.
const (
	roleDial   = "connect"
	roleListen = "listen "
)

// key derives the key of a role.
func (s *PeerSecret) key(role string) (ed25519.PrivateKey, error) {
	seed, err := hkdf.Key(sha256.New, []byte(*s.text), nil, "nodedrain server "+role, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("deriving a key from the peer secret: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// config returns the TLS configuration of a side, by its own role and that of its peer.
func (s *PeerSecret) config(own, peer string) (*tls.Config, error) {
	key, err := s.key(own)
	if err != nil {
		return nil, err
	}
	expected, err := s.key(peer)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)} // the peer verifies nothing except the key
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("creating a certificate with a key of the peer secret: %w", err)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		// The handshake proves that the peer has the private key. VerifyConnection compares the key.
		ClientAuth: tls.RequireAnyClientCert, InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 1 && expected.Public().(ed25519.PublicKey).Equal(state.PeerCertificates[0].PublicKey) {
				return nil
			}
			return errPeerSecret
		},
		SessionTicketsDisabled: true,
	}, nil
}

// errPeerSecret means that a peer has not proved that it has the secret for this address.
var errPeerSecret = errors.New("it does not have the peer secret of this server")

// listen returns the TLS configuration of a listener.
func (s *PeerSecret) listen(at net.Addr) (*tls.Config, error) {
	return s.config(roleListen+at.String(), roleDial)
}

// dial returns the TLS configuration for a connection to an address.
func (s *PeerSecret) dial(to net.Addr) (*tls.Config, error) {
	return s.config(roleDial, roleListen+to.String())
}
