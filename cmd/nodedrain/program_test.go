package main

import (
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/clitest"
)

// The help of a command matches its golden file.
func TestHelp(t *testing.T) {
	t.Parallel()
	for name := range commands() {
		code, out, _ := command(t.Context(), name+" -h")
		must.Zero(t, code)
		clitest.Golden(t, "help/"+strings.ReplaceAll(name, " ", "_")+".golden", out)
		for i, line := range strings.Split(out, "\n") {
			must.LessEq(t, 90, len(line), must.Sprintf("%s: line %d: %s", name, i+1, line))
		}
	}
}

// Invalid flags are refused with the messages of Nomad's command, in its order, before any
// request.
func TestNodeDrain_conflicts(t *testing.T) {
	t.Parallel()
	const (
		monitorAlone = "The -monitor flag cannot be used with the '-enable' or '-disable' flags"
		either       = "Either the '-enable' or '-disable' flag must be set, unless using '-monitor'"
		nodeOrSelf   = "Node ID must be specified if -self isn't being used"
		noStrategy   = "-disable can't be combined with flags configuring drain strategy"
		limits       = "-deadline can't be combined with -force or -no-deadline"
		forceOrNone  = "-force and -no-deadline are mutually exclusive"
	)
	for _, c := range []struct{ line, want string }{
		{"-monitor -enable abcd", monitorAlone},
		{"-monitor -disable abcd", monitorAlone},
		{"-monitor -enable -disable", monitorAlone},
		{"abcd", either},
		{"-enable -disable abcd", either},
		{"-enable -disable", either},
		{"-enable", nodeOrSelf},
		{"-monitor", nodeOrSelf},
		{"-enable abcd efgh", "This command takes one node, and the command line has 2"},
		{"-enable -self abcd", "-self and a node are mutually exclusive"},
		{"-disable -force -deadline 1h", nodeOrSelf},
		{"-disable -deadline 1h abcd", noStrategy},
		{"-disable -force abcd", noStrategy},
		{"-disable -no-deadline abcd", noStrategy},
		{"-disable -ignore-system abcd", noStrategy},
		{"-enable -deadline 1h -force abcd", limits},
		{"-enable -deadline 1h -no-deadline abcd", limits},
		{"-enable -deadline 1h -force -no-deadline abcd", limits},
		{"--enable --force --no-deadline abcd", forceOrNone},
		{"-monitor -force -no-deadline abcd", forceOrNone},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			code, out, errs := command(t.Context(), "node drain "+c.line)
			must.One(t, code)
			must.Eq(t, "", out)
			must.Eq(t, c.want+"\nFor additional help try 'nodedrain node drain -help'\n", errs)
		})
	}
	for _, c := range []struct{ line, want string }{
		{"-enable -deadline soon abcd", `Failed to parse deadline "soon": time: invalid duration "soon"`},
		{"-enable -deadline 0s abcd", "A positive drain duration must be given"},
		{"-enable -deadline -1h abcd", "A positive drain duration must be given"},
		{"-enable a", "Identifier must contain at least two characters."},
		{"-enable -address ftp://x abcd", "Error initializing client: invalid address 'ftp://x': it must begin with http:// or https://"},
		{"-enable -address http://127.0.0.1:1 abcd", "Error toggling drain mode: Get "},
		{"-enable -self -address http://127.0.0.1:1", "Error querying agent info: failed querying self endpoint: Get "},
		{"-enable -metal abcd", `flag provided but not defined: -metal (did you mean -meta?); "nodedrain node drain -h" lists the options`},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			code, out, errs := command(t.Context(), "node drain "+c.line)
			must.One(t, code)
			must.Eq(t, "", out)
			must.StrHasPrefix(t, c.want, errs)
			must.Eq(t, 1, strings.Count(errs, "\n"), must.Sprint(errs))
		})
	}
}
