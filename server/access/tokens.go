package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
)

// Tokens holds the tokens of a file, which may be read again at any time. All methods are safe
// for concurrent use. It owns no goroutine: the owner of the process's signals calls
// [Tokens.Reload].
type Tokens struct {
	path   string
	logger hclog.Logger
	// known are the valid tokens. The slice is replaced, never written to.
	known atomic.Pointer[[]Token]
}

var _ httpapi.Access = (*Tokens)(nil)

// Open reads a tokens file. A nil logger discards the warnings about it. The error names the
// file.
func Open(path string, logger hclog.Logger) (*Tokens, error) {
	if logger == nil {
		logger = hclog.NewNullLogger()
	}
	t := &Tokens{path: path, logger: logger}
	if err := t.Reload(); err != nil {
		return nil, err
	}
	return t, nil
}

// Reload reads the file again. Then its tokens are valid and no others. Requests in progress keep
// their right. After an error, which names the file, nothing has changed.
func (t *Tokens) Reload() error {
	tokens, err := t.read()
	if err != nil {
		return fmt.Errorf("tokens file %s: %w", t.path, err)
	}
	t.known.Store(&tokens)
	t.logger.Info("tokens are in force", "file", t.path, "tokens", len(tokens))
	return nil
}

func (t *Tokens) read() ([]Token, error) {
	file, err := os.Open(t.path)
	if err != nil {
		return nil, bare(err)
	}
	defer file.Close() // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, bare(err)
	}
	t.warn(info)
	text, err := io.ReadAll(io.LimitReader(file, MaxFileSize+1))
	if err != nil {
		return nil, bare(err)
	}
	return Parse(text)
}

// warn reports that users other than the owner can read or change the file.
func (t *Tokens) warn(info os.FileInfo) {
	const others, write = 0o077, 0o022
	if runtime.GOOS == "windows" { // its modes have no meaning
		return
	}
	switch mode := info.Mode().Perm(); {
	case mode&write != 0:
		t.logger.Warn("others can write to the tokens file and add tokens: make it 0600", "file", t.path, "mode", mode)
	case mode&others != 0:
		t.logger.Warn("others can read the tokens file: make it 0600", "file", t.path, "mode", mode)
	}
}

// bare returns an error of package os without the file name, which the caller adds.
func bare(err error) error {
	if e, ok := err.(*os.PathError); ok {
		return e.Err
	}
	return err
}

// MaxSecretLength is how many bytes of a request's token are read. A longer token is unknown.
const MaxSecretLength = 256

// Identify returns the token that has the secret. Known and unknown secrets take the same time:
// it compares all hashes, each to its end.
func (t *Tokens) Identify(secret string) (who httpapi.Identity, ok bool) {
	if secret == "" || len(secret) > MaxSecretLength {
		return httpapi.Identity{}, false
	}
	hash := sha256.Sum256([]byte(secret))
	found := -1
	known := *t.known.Load()
	for i := range known {
		same := subtle.ConstantTimeCompare(hash[:], known[i].hash[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return httpapi.Identity{}, false
	}
	right := known[found].Right
	return httpapi.Identity{
		Name: known[found].Name, Read: right == Read || right == Write, Write: right == Write, Node: right == Node || right == Write,
	}, true
}

// Names returns the names of the valid tokens, in order.
func (t *Tokens) Names() []string {
	var names []string
	for _, token := range *t.known.Load() {
		names = append(names, token.Name)
	}
	slices.Sort(names)
	return names
}

// Format writes the file and how many tokens it has, for every verb.
func (t *Tokens) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "tokens of %s: %d", t.path, len(*t.known.Load()))
}

// MarshalJSON writes the names.
func (t *Tokens) MarshalJSON() ([]byte, error) { return json.Marshal(t.Names()) }
