package exec

import (
	"testing"

	"github.com/shoenig/test/must"
)

// FuzzParseGreeting: a first message never panics, and only version 1 has a token.
func FuzzParseGreeting(f *testing.F) {
	for _, seed := range []string{`{"version":1,"auth_token":"x"}`, `{"version":2}`, `null`, `[]`, ``, `{"version":1,"auth_token":7}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if token, err := parseGreeting(text); err != nil {
			must.Eq(t, "", token)
		}
	})
}
