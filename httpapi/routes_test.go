package httpapi

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// RouteNames returns "METHOD path" of every route, for the tests outside of the package.
func RouteNames() (names []string) {
	for _, r := range routes() {
		for _, method := range r.methods() {
			names = append(names, method+" "+r.path)
		}
	}
	return names
}

// BlockingRoutes returns "METHOD path" of the routes that answer from the state and wait for an index.
func BlockingRoutes() (names []string) {
	for _, r := range routes() {
		if r.reads && !r.local && !r.live && !r.bulk {
			names = append(names, r.method+" "+r.path)
		}
	}
	return names
}

// docs/api.md lists the routes there are, with the rights they need, and no others.
func TestRoutes_AreDocumented(t *testing.T) {
	t.Parallel()
	text := result.Of(os.ReadFile("../docs/api.md")).OK(t)
	var documented []string
	for _, line := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /[^`]*)` \\| ([^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, line[1]+" "+line[2])
	}
	var there []string
	for _, r := range routes() {
		right := map[right]string{needsNothing: "none", needsRead: "read", needsWrite: "write", needsNode: "node or write"}[r.needs]
		if r.own {
			right += ", own"
		}
		there = append(there, r.method+" "+r.path+" "+right)
	}
	slices.Sort(documented)
	slices.Sort(there)
	must.Eq(t, strings.Join(there, "\n"), strings.Join(documented, "\n"))
}
