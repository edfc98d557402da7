package jobfields_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/jobfields"
)

var rewrite = flag.Bool("rewrite", false, "write docs/jobs.md")

// docs/jobs.md is the table by which the servers decide.
func TestPage(t *testing.T) {
	t.Parallel()
	name := filepath.Join("..", "..", "docs", "jobs.md")
	if *rewrite {
		must.NoError(t, os.WriteFile(name, []byte(jobfields.Page()), 0o644))
	}
	page, err := os.ReadFile(name)
	must.NoError(t, err)
	must.Eq(t, string(page), jobfields.Page())
}
