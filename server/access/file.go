package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Bounds of a tokens file. Each request is compared with all of its tokens.
const (
	// MaxTokens is how many tokens a file may hold.
	MaxTokens = 1000
	// MaxFileSize is the largest size of a tokens file in bytes.
	MaxFileSize = 1 << 20
)

// columns is the number of words in a line, without comments.
const columns = 3

// Parse reads a tokens file. An error names the line and the mistake. It repeats nothing of the
// line except a name that appears twice.
func Parse(text []byte) ([]Token, error) {
	if len(text) > MaxFileSize {
		return nil, fmt.Errorf("the file has %d bytes and may have %d", len(text), MaxFileSize)
	}
	var tokens []Token
	names, hashes := map[string]int{}, map[[sha256.Size]byte]int{}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		t, empty, err := parseLine(string(line))
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", number, err)
		case empty:
			continue
		case names[t.Name] > 0:
			return nil, fmt.Errorf("line %d: the name %s is already in line %d", number, t.Name, names[t.Name])
		case hashes[t.hash] > 0:
			return nil, fmt.Errorf("line %d: the same secret as in line %d; each token needs its own", number, hashes[t.hash])
		case len(tokens) == MaxTokens:
			return nil, fmt.Errorf("line %d: more than %d tokens", number, MaxTokens)
		}
		names[t.Name], hashes[t.hash] = number, number
		tokens = append(tokens, t)
	}
	if len(tokens) == 0 {
		return nil, errors.New("the file holds no token: every request would be refused")
	}
	return tokens, nil
}

func parseLine(line string) (t Token, empty bool, err error) {
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(line)
	if len(words) == 0 {
		return t, true, nil
	}
	if len(words) != columns {
		return t, false, fmt.Errorf("it has %d words and must have %d: name, right, SHA-256 of the secret", len(words), columns)
	}
	if err := checkName(words[0]); err != nil {
		return t, false, err
	}
	t.Name = words[0]
	if t.Right, err = ParseRight(words[1]); err != nil {
		return t, false, err
	}
	hash, err := hex.DecodeString(words[2])
	if err != nil || len(hash) != sha256.Size {
		return t, false, fmt.Errorf("the third word must be a SHA-256, which is %d hexadecimal digits", hex.EncodedLen(sha256.Size))
	}
	t.hash = [sha256.Size]byte(hash)
	return t, false, nil
}
