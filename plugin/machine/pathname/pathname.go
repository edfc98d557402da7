// Package pathname turns ids into path elements. Ids of jobs, tasks and allocations may contain
// slashes, dots and any other byte, and have up to 256 bytes. The client and its drivers name files
// and folders with it.
package pathname

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// MaxLength is the length of the longest path element that [Encode] returns, in bytes. The 55 bytes
// that file systems allow beyond it are for prefixes and suffixes.
const MaxLength = 200

// hashed begins the hash at the end of a name that was too long. No other name contains it.
const hashed = "="

// Encode returns a path element for an id: different elements for different ids. An id of letters,
// digits, "-", "_" and inner dots stays as it is, up to [MaxLength] bytes. Other bytes become "%" and
// two digits. A result that is too long ends with a SHA-256 of the id instead. The result is never
// empty, "." or "..", and has only letters, digits and the characters "-_.%=". Callers may therefore
// add suffixes that begin with "~".
func Encode(id string) string {
	if id == "" {
		return "%"
	}
	var name strings.Builder
	for i := range len(id) {
		if c := id[i]; plain(c) || c == '.' && i > 0 {
			name.WriteByte(c)
		} else {
			fmt.Fprintf(&name, "%%%02X", c)
		}
	}
	if name.Len() <= MaxLength {
		return name.String()
	}
	sum := sha256.Sum256([]byte(id))
	tail := hashed + hex.EncodeToString(sum[:])
	return name.String()[:MaxLength-len(tail)] + tail
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// ErrHashed means that a name has only the hash of its id.
var ErrHashed = errors.New("the name has only the hash of its id")

// Decode returns the id of a name that [Encode] returned. It returns [ErrHashed] for a long id, and
// another error for a name that Encode does not return.
func Decode(name string) (string, error) {
	if before, sum, ok := strings.Cut(name, hashed); ok {
		if _, err := hex.DecodeString(sum); err == nil && len(name) == MaxLength && len(sum) == 2*sha256.Size && !strings.Contains(before, hashed) {
			return "", ErrHashed
		}
	}
	if name == "%" {
		return "", nil
	}
	var id strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			id.WriteByte(name[i])
			continue
		}
		if i+3 > len(name) {
			break
		}
		b, err := hex.DecodeString(name[i+1 : i+3])
		if err != nil {
			break
		}
		id.WriteByte(b[0])
		i += 2
	}
	if Encode(id.String()) != name {
		return "", fmt.Errorf("%q is not the name of an id", name)
	}
	return id.String(), nil
}
