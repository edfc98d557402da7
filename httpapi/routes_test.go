package httpapi

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// docs/api.md lists the routes there are, with the rights they need, and no others.
func TestRoutes_AreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/api.md")
	must.NoError(t, err)
	var documented []string
	for _, line := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /[^`]*)` \\| ([^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, line[1]+" "+line[2])
	}
	var there []string
	for _, r := range routes() {
		right := map[right]string{needsNothing: "none", needsRead: "read", needsWrite: "write"}[r.needs]
		if r.own {
			right += ", own"
		}
		there = append(there, r.method+" "+r.path+" "+right)
	}
	slices.Sort(documented)
	slices.Sort(there)
	must.Eq(t, strings.Join(there, "\n"), strings.Join(documented, "\n"))
}
