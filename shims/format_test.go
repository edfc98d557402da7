package shims_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// newGoldens makes tests write missing golden files. No test changes an existing one.
var newGoldens = flag.Bool("new-goldens", false, "write the golden files of a new cluster version")

// golden returns the path of the golden entry of one message, as the first servers of a cluster
// version wrote it.
func golden(version byte, name string) string {
	return filepath.Join("testdata", "format", fmt.Sprint("v", version), name+".entry")
}

// The second byte of an entry is the cluster version that the entry needs. A message with
// all fields set needs the newest version of any of its fields. So the entry of such a
// message equals the golden file of that version, or its format has changed.
func TestFormat_AnEncodingChangesOnlyWithAVersion(t *testing.T) {
	t.Parallel()
	for _, m := range fullMessages() {
		t.Run(m.Type().String(), func(t *testing.T) {
			t.Parallel()
			entry := encode(t, m)
			file := golden(entry[1], m.Type().String())
			want, err := os.ReadFile(file)
			if os.IsNotExist(err) && *newGoldens {
				must.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
				must.NoError(t, os.WriteFile(file, entry, 0o644))
				return
			}
			must.NoError(t, err, must.Sprint("no golden file: see \"A new cluster version\" in shims/doc.go"))
			if bytes.Equal(want, entry) {
				return
			}
			t.Fatalf("the encoding of %s has changed, and its cluster version %d has not:\n%s\n"+
				"An older server stops at such an entry. See \"A new cluster version\" in shims/doc.go.",
				m.Type(), entry[1], fieldChanges(t, want, entry))
		})
	}
}

// fieldChanges lists the fields that only one of two entries has.
func fieldChanges(t *testing.T, was, is []byte) string {
	t.Helper()
	before, after := fields(t, was), fields(t, is)
	var changes []string
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if !after[path] {
			changes = append(changes, "  gone: "+path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if !before[path] {
			changes = append(changes, "  new:  "+path)
		}
	}
	if len(changes) == 0 {
		return "  the fields are the same, their values or types are not"
	}
	return strings.Join(changes, "\n")
}

// fields are the paths of all fields of an entry.
func fields(t *testing.T, entry []byte) map[string]bool {
	t.Helper()
	handle := new(codec.MsgpackHandle)
	handle.RawToString = true
	var body any
	must.NoError(t, codec.NewDecoderBytes(entry[2:], handle).Decode(&body))
	found := make(map[string]bool)
	addFields(found, "", body)
	return found
}

func addFields(found map[string]bool, path string, value any) {
	switch value := value.(type) {
	case map[any]any:
		for name, field := range value {
			at := fmt.Sprintf("%s.%v", path, name)
			if text := fmt.Sprint(name); strings.HasPrefix(text, "text ") { // a key of a map of the message
				at = path + ".*"
			}
			found[at] = true
			addFields(found, at, field)
		}
	case []any:
		for i, item := range value {
			addFields(found, fmt.Sprintf("%s[%d]", path, i), item)
		}
	}
}

// A server must read the entries of all older versions, because its log may begin with them. An
// entry that is decoded and encoded again does not change, so a later field does not show in a
// message that does not use it.
func TestFormat_EveryGoldenStaysReadable(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "format", "v*", "*.entry"))
	must.NoError(t, err)
	perVersion := make(map[string]int)
	for _, file := range files {
		perVersion[filepath.Base(filepath.Dir(file))]++
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			must.NoError(t, err)
			m := decode[shims.Message](t, want)
			must.Eq(t, file, golden(want[1], m.Type().String()))
			if got := encode(t, m); !bytes.Equal(want, got) {
				t.Fatalf("the encoding of an entry of an older version has changed:\n%s\n"+
					"A server of that version stops at such an entry. See \"A new cluster version\" in shims/doc.go.",
					fieldChanges(t, want, got))
			}
		})
	}
	must.Eq(t, 12, perVersion["v1"], must.Sprint("golden files of version 1 are never deleted"))
}
