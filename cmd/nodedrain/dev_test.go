package main

import (
	"testing"

	"github.com/shoenig/test/must"
)

// Mistakes in the flags of dev and commands of earlier builds are refused.
func TestDev_mistakes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"dev now":                       "This command takes no arguments",
		"dev -nodes 0":                  "-nodes is 0 and must be above 0",
		"dev -colour":                   "flag provided but not defined: -colour",
		"demo now":                      "This command takes no arguments",
		"clients -nodes 3":              `nodedrain has no command "clients" any more: "nodedrain client" with a block plugin "mock" {}`,
		"server -dev":                   `nodedrain server has no flag -dev any more: "nodedrain dev -simulated"`,
		"server -data-dir x -clients 3": `"nodedrain dev -simulated"`,
		"demo -real":                    `nodedrain demo has no flag -real any more: "nodedrain dev" runs real tasks`,
		"sim run -trace x":              "-story prints the events of a run",
		"demo -without":                 "give a job a max_parallel of its count",
	} {
		code, out, errs := command(t.Context(), line)
		must.Positive(t, code, must.Sprint(line))
		must.Eq(t, "", out)
		must.StrContains(t, errs, want)
	}
}
