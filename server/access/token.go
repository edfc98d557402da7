package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Right is what a token allows. The zero value allows nothing.
type Right uint8

// The rights.
const (
	// Read allows to read everything.
	Read Right = iota + 1
	// Write allows to change things, to read them and to register nodes.
	Write
	// Node allows to register nodes, and nothing else.
	Node
)

// String returns the right as a tokens file writes it.
func (r Right) String() string {
	switch r {
	case Read:
		return "read"
	case Write:
		return "write"
	case Node:
		return "node"
	}
	return "none"
}

// ParseRight returns the right of that name. The error does not repeat the name, because it may
// be a secret in the wrong column.
func ParseRight(name string) (Right, error) {
	switch name {
	case "read":
		return Read, nil
	case "write":
		return Write, nil
	case "node":
		return Node, nil
	}
	return 0, errRight()
}

func errRight() error { return errors.New("the right must be read, write or node") }

// MaxNameLength is the largest length of a token's name in bytes.
const MaxNameLength = 64

// checkName refuses a name that could not be in a line of the file, or of a log.
func checkName(name string) error {
	if name == "" || len(name) > MaxNameLength {
		return fmt.Errorf("a token's name must have 1 to %d characters", MaxNameLength)
	}
	if strings.HasPrefix(name, secretPrefix) {
		return fmt.Errorf("a token's name must not begin with %s: that is how secrets begin", secretPrefix)
	}
	for _, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("._-@", rune(c)) {
			return errors.New("a token's name must be of letters, digits and . _ - @")
		}
	}
	return nil
}

// Token is the public part of a secret.
type Token struct {
	// Name names the owner of the secret. It is not secret itself.
	Name  string
	Right Right
	hash  [sha256.Size]byte // of the secret
}

// Line returns the token's line of a tokens file, without the line end.
func (t Token) Line() string {
	return t.Name + " " + t.Right.String() + " " + hex.EncodeToString(t.hash[:])
}

// Format writes name and right for every verb. The hash is not secret, but no log needs it.
func (t Token) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "%s (%s)", t.Name, t.Right) }

// Secret is what a request shows. It prints as "[secret]" in every way except [Secret.Reveal].
type Secret struct {
	// text is nil in the zero value, which belongs to no token. It is a pointer because fmt
	// prints unexported fields of other structs without their methods, but does not follow a
	// pointer there.
	text *string
}

// secretPrefix lets people, and scanners of published files, recognize a secret.
const secretPrefix = "nodedrain_"

// secretBytes is how many random bytes a secret has.
const secretBytes = 32

// Generate draws a secret and returns it with its token.
func Generate(name string, right Right) (Secret, Token, error) {
	if err := checkName(name); err != nil {
		return Secret{}, Token{}, err
	}
	if right.String() == Right(0).String() {
		return Secret{}, Token{}, errRight()
	}
	chance := make([]byte, secretBytes)
	rand.Read(chance) // it never returns an error
	text := secretPrefix + base64.RawURLEncoding.EncodeToString(chance)
	return Secret{&text}, Token{Name: name, Right: right, hash: sha256.Sum256([]byte(text))}, nil
}

// Reveal returns the secret. Give it to its owner and keep it nowhere.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Format writes "[secret]" for every verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) }

// MarshalText returns "[secret]".
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

const redacted = "[secret]"
