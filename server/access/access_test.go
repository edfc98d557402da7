package access_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/access"
)

// generate makes a token. It cannot fail with such a name.
func generate(t *testing.T, name string, right access.Right) (access.Secret, access.Token) {
	t.Helper()
	secret, token, err := access.Generate(name, right)
	must.NoError(t, err)
	return secret, token
}

// tokensFile is a tokens file in a folder of its own.
type tokensFile struct {
	*testing.T
	path string
}

func newFile(t *testing.T, lines ...string) tokensFile {
	f := tokensFile{t, filepath.Join(t.TempDir(), "tokens")}
	f.write(lines...)
	return f
}

func (f tokensFile) write(lines ...string) {
	f.Helper()
	must.NoError(f, os.WriteFile(f.path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	reader, readLine := generate(t, "dashboard", access.Read)
	writer, writeLine := generate(t, "ops", access.Write)
	stranger, _ := generate(t, "ops", access.Write)
	registrar, nodeLine := generate(t, "machines", access.Node)
	file := newFile(t, "# who may what", "", readLine.Line()+" # until spring", "\t"+writeLine.Line(), nodeLine.Line())
	tokens := result.Of(access.Open(file.path, nil)).OK(t)
	must.Eq(t, []string{"dashboard", "machines", "ops"}, tokens.Names())

	cases := []struct {
		name, secret string
		want         httpapi.Identity
		ok           bool
	}{
		{"a reader", reader.Reveal(), httpapi.Identity{Name: "dashboard", Read: true}, true},
		{"a writer", writer.Reveal(), httpapi.Identity{Name: "ops", Read: true, Write: true, Node: true}, true},
		{"a registrar", registrar.Reveal(), httpapi.Identity{Name: "machines", Node: true}, true},
		{"no token", "", httpapi.Identity{}, false},
		{"a stranger", stranger.Reveal(), httpapi.Identity{}, false},
		{"half a secret", writer.Reveal()[:20], httpapi.Identity{}, false},
		{"a secret and more", writer.Reveal() + "x", httpapi.Identity{}, false},
		{"the hash", strings.Fields(writeLine.Line())[2], httpapi.Identity{}, false},
		{"the name", "ops", httpapi.Identity{}, false},
		{"very long", strings.Repeat("x", 1<<20), httpapi.Identity{}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			who, ok := tokens.Identify(c.secret)
			must.Eq(t, c.want, who)
			must.Eq(t, c.ok, ok)
		})
	}
}

// A reload removes rights and adds others. A reload that fails changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	old, oldLine := generate(t, "old", access.Write)
	young, youngLine := generate(t, "young", access.Read)
	file := newFile(t, oldLine.Line())
	tokens := result.Of(access.Open(file.path, nil)).OK(t)

	file.write(youngLine.Line())
	_, ok := tokens.Identify(young.Reveal())
	must.False(t, ok, must.Sprint("nothing changes before a reload"))
	must.NoError(t, tokens.Reload())
	_, ok = tokens.Identify(young.Reveal())
	must.True(t, ok)
	_, ok = tokens.Identify(old.Reveal())
	must.False(t, ok)

	for _, broken := range []string{"", "young read", youngLine.Line() + "\n" + youngLine.Line()} {
		file.write(broken)
		err := tokens.Reload()
		must.ErrorContains(t, err, file.path)
		_, ok = tokens.Identify(young.Reveal())
		must.True(t, ok)
	}
	must.NoError(t, os.Remove(file.path))
	must.ErrorIs(t, tokens.Reload(), fs.ErrNotExist)
	_, ok = tokens.Identify(young.Reveal())
	must.True(t, ok)
}

// Requests are answered during a reload, by the old tokens or by the new ones. This test is for
// the race detector.
func TestReload_underRequests(t *testing.T) {
	t.Parallel()
	secret, line := generate(t, "ops", access.Write)
	tokens := result.Of(access.Open(newFile(t, line.Line()).path, nil)).OK(t)
	done := make(chan error)
	go func() {
		var errs []error
		for range 50 {
			errs = append(errs, tokens.Reload())
		}
		done <- errors.Join(errs...)
	}()
	for range 200 {
		_, ok := tokens.Identify(secret.Reveal())
		must.True(t, ok)
	}
	must.NoError(t, <-done)
}

// A warning names what users other than the owner can do with the file, and no more.
func TestOpen_warnsOfModes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode fs.FileMode
		want string
	}{{0o600, ""}, {0o400, ""}, {0o640, "others can read"}, {0o604, "others can read"}, {0o660, "others can write"}, {0o602, "others can write"}} {
		t.Run(c.mode.String(), func(t *testing.T) {
			t.Parallel()
			secret, line := generate(t, "ops", access.Write)
			file := newFile(t, line.Line())
			must.NoError(t, os.Chmod(file.path, c.mode))
			var out bytes.Buffer
			result.Of(access.Open(file.path, hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Trace}))).OK(t)
			must.Eq(t, c.want != "", strings.Contains(out.String(), "[WARN]"), must.Sprint(out.String()))
			must.StrContains(t, out.String(), c.want)
			must.StrNotContains(t, out.String(), secret.Reveal())
			must.StrNotContains(t, out.String(), strings.Fields(line.Line())[2])
		})
	}
}

func TestParse_errors(t *testing.T) {
	t.Parallel()
	_, ops := generate(t, "ops", access.Write)
	words := strings.Fields(ops.Line())
	many := make([]string, access.MaxTokens+1)
	for i := range many {
		_, token := generate(t, fmt.Sprint("t", i), access.Read)
		many[i] = token.Line()
	}
	cases := []struct{ name, text, want string }{
		{"empty", "", "holds no token"},
		{"only comments", "# no token\n\n", "holds no token"},
		{"two words", "ops write", "line 1: it has 2 words and must have 3"},
		{"four words", "\n" + ops.Line() + " more", "line 2: it has 4 words"},
		{"no right", "ops admin " + words[2], "line 1: the right must be read, write or node"},
		{"a right in capitals", "ops WRITE " + words[2], "line 1: the right must be read, write or node"},
		{"a short hash", "ops write " + words[2][:62], "line 1: the third word must be a SHA-256, which is 64 hexadecimal digits"},
		{"a long hash", ops.Line() + "00", "line 1: the third word"},
		{"no hash", "ops write " + strings.Repeat("z", 64), "line 1: the third word"},
		{"a name with a slash", "o/ps write " + words[2], "line 1: a token's name must be of letters"},
		{"a name in another alphabet", "öps write " + words[2], "line 1: a token's name must be of letters"},
		{"a long name", strings.Repeat("a", 65) + " write " + words[2], "line 1: a token's name must have 1 to 64"},
		{"a name twice", ops.Line() + "\n#\nops read " + strings.Repeat("0", 64), "line 3: the name ops is already in line 1"},
		{"a secret twice", ops.Line() + "\nme read " + words[2], "line 2: the same secret as in line 1"},
		{"too many", strings.Join(many, "\n"), "line 1001: more than 1000 tokens"},
		{"too large", strings.Repeat("#", access.MaxFileSize+1), "has 1048577 bytes and may have 1048576"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := access.Parse([]byte(c.text))
			must.ErrorContains(t, err, c.want)
		})
	}
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	secret, token := generate(t, "ops", access.Write)
	again, _ := generate(t, "ops", access.Write)
	must.NotEq(t, secret.Reveal(), again.Reveal())
	must.StrHasPrefix(t, "nodedrain_", secret.Reveal())
	must.Eq(t, len("nodedrain_")+43, len(secret.Reveal())) // 256 bits in base64
	parsed := result.Of(access.Parse([]byte(token.Line()))).OK(t)
	must.Eq(t, token.Line(), parsed[0].Line())

	_, _, err := access.Generate("o ps", access.Read)
	must.ErrorContains(t, err, "letters, digits")
	_, _, err = access.Generate("ops", 0)
	must.ErrorContains(t, err, "read, write or node")
	must.Eq(t, "", access.Secret{}.Reveal())
}

// However a value is printed, the output holds no secret, and no word that was in the wrong place
// of a tokens file.
func TestNoSecretIsPrinted(t *testing.T) {
	t.Parallel()
	secret, token := generate(t, "ops", access.Write)
	file := newFile(t, token.Line())
	tokens := result.Of(access.Open(file.path, nil)).OK(t)
	type holder struct {
		Exported access.Secret
		hidden   access.Secret
		pointer  *access.Secret
		token    access.Token
		tokens   *access.Tokens
	}
	values := []any{
		secret, &secret, token, &token, tokens, []access.Secret{secret}, map[string]access.Secret{"k": secret},
		holder{secret, secret, &secret, token, tokens}, &holder{Exported: secret, hidden: secret},
		fmt.Errorf("request with %v", secret),
	}
	// A secret in every column of a line, and in lines of other lengths.
	for _, line := range []string{"%s", "%s write", "ops %s", "ops write %s", "%s write " + strings.Repeat("0", 64), "ops %s " + strings.Repeat("0", 64), "ops write %s more"} {
		file.write(fmt.Sprintf(line, secret.Reveal()))
		_, err := access.Open(file.path, nil)
		must.Error(t, err)
		values = append(values, err)
	}

	hash := strings.Fields(token.Line())[2]
	for _, v := range values {
		marshalled := result.Of(json.Marshal(v)).OK(t)
		printed := []string{string(marshalled)}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			printed = append(printed, fmt.Sprintf(verb, v))
		}
		var logged bytes.Buffer
		hclog.New(&hclog.LoggerOptions{Output: &logged}).Info("here", "value", v)
		hclog.New(&hclog.LoggerOptions{Output: &logged, JSONFormat: true}).Info("here", "value", v)
		for _, text := range append(printed, logged.String()) {
			must.StrNotContains(t, text, secret.Reveal())
			must.StrNotContains(t, text, fmt.Sprintf("%x", secret.Reveal()))
		}
		must.StrNotContains(t, logged.String(), hash)
	}
}
