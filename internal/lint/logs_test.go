package lint_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

func TestCheckLogs_fixtures(t *testing.T) {
	t.Parallel()
	tree, err := lint.ReadTree(folder(t, "logs"))
	must.NoError(t, err)
	readWants(t, folder(t, "logs")).check(t, lint.CheckLogs(tree, map[string]string{"allocation": "alloc"}))
}

// logKeys are the names of keys that have another one in this project: an id stands
// under the noun alone, and a job as namespace/id.
func logKeys() map[string]string {
	return map[string]string{
		"allocation": "alloc", "evaluation": "eval", "err": "error", "addr": "address", "duration": "took", "reason": "why",
		"id": "what it is the id of", "namespace": "job", "nodeid": "node", "allocid": "alloc", "jobid": "job", "drainid": "drain",
	}
}

func TestProject_logs(t *testing.T) {
	t.Parallel()
	tree, err := lint.ReadTree(root())
	must.NoError(t, err)
	report(t, lint.CheckLogs(tree, logKeys()))
}
