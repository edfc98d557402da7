package lint_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

func TestCheckModules_fixtures(t *testing.T) {
	t.Parallel()
	tree, err := lint.ReadTree(folder(t, "modules"))
	must.NoError(t, err)
	rules := []lint.ModuleRule{{Dir: "core", Uses: []string{"base"}}}
	found, err := lint.CheckModules(tree, "example.org/repository", rules)
	must.NoError(t, err)
	readWants(t, folder(t, "modules")).check(t, found)

	_, err = lint.CheckModules(tree, "example.org/repository", []lint.ModuleRule{{Dir: "cor"}})
	must.EqError(t, err, "a module rule speaks of cor, which holds no Go file")
}

// moduleRules are for the modules that embedders require without the rest of the project.
func moduleRules() []lint.ModuleRule {
	return []lint.ModuleRule{
		{Dir: "cluster"},
		{Dir: "drainer", Uses: []string{"cluster"}},
	}
}

func TestProject_modules(t *testing.T) {
	t.Parallel()
	tree, err := lint.ReadTree(root())
	must.NoError(t, err)
	found, err := lint.CheckModules(tree, module, moduleRules())
	must.NoError(t, err)
	report(t, found)
}
