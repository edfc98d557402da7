package statestore

import (
	"encoding/binary"
	"strings"
)

// key is a position in an index. Keys are built from parts, and compare like the tuples of their
// parts. A key is a prefix of another key if and only if its parts are the first parts of the other
// key.
type key []byte

// keyRoom is spare capacity for a list, two numbers and the row's id (a UUID), which
// go-memdb appends. Without it each key would be allocated twice.
const keyRoom = 1 + 2*8 + 36 + 2

// newKey returns a key that begins with the parts.
func newKey[S ~string](parts ...S) key { return texts(withRoom(parts), parts) }

// inList returns a key that begins with a list and the parts.
func inList[S ~string](list byte, parts ...S) key { return texts(withRoom(parts).byte(list), parts) }

// withRoom returns an empty key with capacity for the parts and keyRoom.
func withRoom[S ~string](parts []S) key {
	n := keyRoom
	for _, p := range parts {
		n += len(p) + 2
	}
	return make(key, 0, n)
}

// texts appends strings.
func texts[S ~string](k key, parts []S) key {
	for _, p := range parts {
		k = k.text(string(p))
	}
	return k
}

// lone returns the key of one part, without room for further parts.
func lone[S ~string](part S) key { return make(key, 0, len(part)+2).text(string(part)) }

// text appends a string. It ends in 00 01, and a zero byte in the string becomes 00 FF. So
// the key of one string is never a prefix of the key of another.
func (k key) text(s string) key { return append(k.open(s), 0x00, 0x01) }

// open appends the beginning of a string.
func (k key) open(s string) key {
	for {
		zero := strings.IndexByte(s, 0)
		if zero < 0 {
			return append(k, s...)
		}
		k = append(append(k, s[:zero]...), 0x00, 0xFF)
		s = s[zero+1:]
	}
}

// byte appends a small number.
func (k key) byte(b byte) key { return append(k, b) }

// bool appends a truth value; false comes first.
func (k key) bool(b bool) key {
	if b {
		return append(k, 1)
	}
	return append(k, 0)
}

// number appends a number.
func (k key) number(n uint64) key { return binary.BigEndian.AppendUint64(k, n) }
