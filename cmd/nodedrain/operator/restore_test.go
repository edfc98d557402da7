package operator

import (
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// A file of another cluster is named as such. A restore of it once gave no hint.
func TestOtherCluster(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ file, servers, want string }{
		{"a", "b", "the file is of cluster a, and the servers are of cluster b"},
		{"a", "a", ""},
		{"", "b", ""}, // of a server without a data directory
		{"a", "", ""}, // of an older build
	} {
		must.Eq(t, test.want, otherCluster(test.file, test.servers))
		must.Eq(t, test.want != "", strings.Contains(restoreWarning(test.want != ""), "ignore the restored state"))
	}
}
