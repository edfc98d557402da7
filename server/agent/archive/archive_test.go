//race:skip one goroutine
package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/archive"
)

var saved = archive.Meta{
	Format: "nodedrain snapshot", Version: 1, ClusterVersion: 2, Cluster: "c1", Server: "s1", Index: 812,
	Time: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
}

const state = "the state of the cluster, in bytes that repeat: bytes, bytes, bytes"

func persist(w io.Writer) error {
	_, err := io.WriteString(w, state)
	return err
}

func file(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	must.NoError(t, archive.Write(&b, saved, persist))
	return b.Bytes()
}

// readAll reads a file whose state may be anything.
func readAll(r io.Reader) (m archive.Meta, found string, err error) {
	m, err = archive.Read(r, func(_ archive.Meta, state io.Reader) error {
		text, err := io.ReadAll(state)
		found = string(text)
		return err
	})
	return m, found, err
}

func TestRead_readsWhatWriteWrote(t *testing.T) {
	t.Parallel()
	m, found, err := readAll(bytes.NewReader(file(t)))
	must.NoError(t, err)
	must.Eq(t, saved, m)
	must.Eq(t, state, found)
	m, err = archive.Read(bytes.NewReader(file(t)), func(archive.Meta, io.Reader) error { return nil })
	must.NoError(t, err, must.Sprint("the state need not be read"))
	must.Eq(t, saved, m)
}

// A file that is cut, or that has one wrong byte, is refused, at every position. The head of the
// compression holds bytes without a meaning.
func TestRead_refusesDamage(t *testing.T) {
	t.Parallel()
	whole := file(t)
	for at := range whole {
		_, _, err := readAll(bytes.NewReader(whole[:at]))
		must.ErrorIs(t, err, archive.ErrInvalid, must.Sprintf("cut to %d bytes", at))
	}
	const gzipHead = 10
	for at := gzipHead; at < len(whole); at++ {
		for _, change := range []byte{0x01, 0x80, 0xff} {
			bad := bytes.Clone(whole)
			bad[at] ^= change
			m, found, err := readAll(bytes.NewReader(bad))
			if err == nil { // a bit of the compression that the content does not depend on
				must.Eq(t, saved, m)
				must.Eq(t, state, found)
				continue
			}
			must.ErrorIs(t, err, archive.ErrInvalid, must.Sprintf("byte %d", at))
		}
	}
	_, _, err := readAll(bytes.NewReader(append(whole, "more"...)))
	must.ErrorIs(t, err, archive.ErrInvalid)
}

// members makes a file of these members.
func members(t *testing.T, names []string, texts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	out := tar.NewWriter(compressed)
	for i, name := range names {
		must.NoError(t, out.WriteHeader(&tar.Header{Name: name, Size: int64(len(texts[i]))}))
		result.Of(io.WriteString(out, texts[i])).OK(t)
	}
	must.NoError(t, out.Close())
	must.NoError(t, compressed.Close())
	return b.Bytes()
}

func TestRead_refusesOtherFiles(t *testing.T) {
	t.Parallel()
	const ours = `{"Format": "nodedrain snapshot", "Version": 1}`
	order := []string{"meta.json", "state.bin", "SHA256SUMS"}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":            {nil, "it is empty or of another program"},
		"a text":           {[]byte("hello, hello, hello"), "it is empty or of another program"},
		"another archive":  {members(t, []string{"readme"}, "hello"), "it is of another program: its next member is not meta.json"},
		"another program":  {members(t, order, `{"Version": 1, "ID": "4-812"}`, "x", "y"), `it is of another program: the format in its meta.json is ""`},
		"a newer form":     {members(t, order, `{"Format": "nodedrain snapshot", "Version": 2}`, "x", "y"), "it has snapshot version 2, and this build reads version 1"},
		"no state":         {members(t, order[:1], ours), "it is incomplete: state.bin is missing"},
		"no checksums":     {members(t, order[:2], ours, "x"), "it is incomplete: SHA256SUMS is missing"},
		"wrong checksums":  {members(t, order, ours, "x", "y"), "it is damaged: a checksum (SHA-256) does not match"},
		"metadata no JSON": {members(t, order, "}", "x", "y"), "its meta.json cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := readAll(bytes.NewReader(c.file))
			must.ErrorIs(t, err, archive.ErrInvalid)
			must.ErrorContains(t, err, c.want)
		})
	}
}

// The error names the cause: the file, its version or the reader.
func TestRead_errors(t *testing.T) {
	t.Parallel()
	refuse := func(cause error) error {
		_, err := archive.Read(bytes.NewReader(file(t)), func(archive.Meta, io.Reader) error { return cause })
		return err
	}
	must.ErrorIs(t, refuse(errors.New("no state")), archive.ErrInvalid)
	version := refuse(fmt.Errorf("reading: %w", cluster.ErrVersion))
	must.ErrorIs(t, version, cluster.ErrVersion)
	must.False(t, errors.Is(version, archive.ErrInvalid))
	lost := errors.New("the connection is lost")
	_, _, err := readAll(io.MultiReader(bytes.NewReader(file(t)[:50]), iotest.ErrReader(lost)))
	must.ErrorIs(t, err, lost)
	must.False(t, errors.Is(err, archive.ErrInvalid))
	must.ErrorIs(t, archive.Write(io.Discard, saved, func(io.Writer) error { return lost }), lost)
}

func FuzzRead(f *testing.F) {
	f.Add(file(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, _, err := readAll(bytes.NewReader(b)); err == nil && m.Format != saved.Format {
			t.Fatalf("read a file of the format %q", m.Format)
		}
	})
}
