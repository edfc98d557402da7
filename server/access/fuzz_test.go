package access_test

import (
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/access"
)

// A file that parses is within the bounds, and its lines parse to the same tokens. An error holds
// no word of the file.
func FuzzParse(f *testing.F) {
	hash := strings.Repeat("0a", 32)
	for _, seed := range []string{
		"", "# nothing", "ops write " + hash, "ops write " + hash + " # why\r\nme read " + strings.Repeat("ff", 32), "ops  read\t" + strings.ToUpper(hash),
		"ops write " + hash + "\nops read " + hash, "ops write", "m node " + hash, "a b c d", "\xff write " + hash, "ops write " + hash + "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		tokens, err := access.Parse(text)
		if err != nil {
			must.SliceEmpty(t, tokens)
			for _, word := range strings.Fields(string(text)) {
				if len(word) > access.MaxNameLength/2 {
					_, twice := strings.CutPrefix(err.Error(), "line ")
					must.True(t, twice && strings.Contains(err.Error(), "the name "+word+" stands") || !strings.Contains(err.Error(), word))
				}
			}
			return
		}
		must.Between(t, 1, len(tokens), access.MaxTokens)
		var lines []string
		for _, token := range tokens {
			must.Between(t, 1, len(token.Name), access.MaxNameLength)
			lines = append(lines, token.Line())
		}
		again := result.Of(access.Parse([]byte(strings.Join(lines, "\n")))).OK(t)
		must.SliceLen(t, len(tokens), again)
		for i := range again {
			must.Eq(t, lines[i], again[i].Line())
		}
	})
}
