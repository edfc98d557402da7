//race:skip one goroutine
package pathname_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

func TestEncode(t *testing.T) {
	t.Parallel()
	for id, expected := range map[string]string{
		"web":                                  "web",
		"web-1_b.v2":                           "web-1_b.v2",
		"4f1b5b3e-0000-4000-8000-000000000001": "4f1b5b3e-0000-4000-8000-000000000001",
		"":                                     "%",
		".":                                    "%2E",
		"..":                                   "%2E.",
		".hidden":                              "%2Ehidden",
		"batch/2026 01":                        "batch%2F2026%2001",
		"a%2Fb":                                "a%252Fb",
		"a=b":                                  "a%3Db",
		"é\x00\n":                              "%C3%A9%00%0A",
		strings.Repeat("a", 200):               strings.Repeat("a", 200),
		strings.Repeat("a", 201):               strings.Repeat("a", 135) + "=a92efd82109373e58f9a2056dee01e807e216ce6075f7051207c0a9f7d666e50",
	} {
		got := pathname.Encode(id)
		must.Eq(t, expected, got)
		back, err := pathname.Decode(got)
		if len(id) > 200 {
			must.ErrorIs(t, err, pathname.ErrHashed)
			must.Eq(t, pathname.MaxLength, len(got))
			continue
		}
		must.NoError(t, err)
		must.Eq(t, id, back)
	}
}

// ids draws ids that are close to each other and to the limits.
func ids() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-b./%=~]{0,6}`),
		rapid.StringMatching(`(%|%2|%2F|/|=|\.){0,4}`),
		rapid.StringOfN(rapid.RuneFrom([]rune("a/")), 60, 256, 256),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 256), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.IntRange(130, 256), func(n int) string { return strings.Repeat("a", n) }),
	)
}

// Different ids have different names. Each name is one path element, and short ones can be decoded.
func TestEncode_Injective(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := map[string]string{}
	rapid.Check(t, func(rt *rapid.T) {
		id := ids().Draw(rt, "id")
		name := pathname.Encode(id)
		if other, known := names[name]; known && other != id {
			rt.Fatalf("%q and %q have the name %q", other, id, name)
		}
		names[name] = id
		must.LessEq(t, pathname.MaxLength, len(name))
		must.Eq(t, name, filepath.Base(name))
		must.True(t, filepath.IsLocal(name))
		must.NotEq(t, ".", name)
		must.False(t, strings.ContainsAny(name, "~/\x00"))
		must.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		back, err := pathname.Decode(name)
		if err != nil {
			must.ErrorIs(t, err, pathname.ErrHashed)
			must.Greater(t, 66, len(id))
			return
		}
		must.Eq(t, id, back)
	})
}

// The result of one Encode is an id like any other.
func TestEncode_Names(t *testing.T) {
	t.Parallel()
	long := pathname.Encode(strings.Repeat("a", 256))
	must.NotEq(t, long, pathname.Encode(long))
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"web", "%", "%2E", "%2e", "%4", "a=b", "%61", pathname.Encode(strings.Repeat("/", 256))} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		id, err := pathname.Decode(name)
		if err == nil {
			must.Eq(t, name, pathname.Encode(id))
		}
	})
}
