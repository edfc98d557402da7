package main

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// A misspelled command or flag is answered with the one that it resembles.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"nod", 127, "nodedrain has no command \"nod\". Did you mean \"node\"?\n"},
		{"node drian -enable first", 127, "nodedrain has no command \"node drian\". Did you mean \"node drain\"?\n"},
		{"server memmbers", 127, "nodedrain has no command \"server memmbers\". Did you mean \"server members\"?\n"},
		{"sim rnu", 127, "nodedrain has no command \"sim rnu\". Did you mean \"sim run\"?\n"},
		{"drian list", 127, "nodedrain has no command \"drian\". Did you mean \"drain\"?\n"},
		{
			"node drain -enable -dedline 1h abcd", 1,
			"flag provided but not defined: -dedline (did you mean -deadline?); \"nodedrain node drain -h\" lists the options\n",
		},
		{"demo -node 3", 1, "flag provided but not defined: -node (did you mean -nodes?); \"nodedrain demo -h\" lists the options\n"},
		{"token create -nam x", 1, "flag provided but not defined: -nam (did you mean -name?); \"nodedrain token create -h\" lists the options\n"},
	} {
		code, out, errs := command(t.Context(), c.line)
		must.Eq(t, c.code, code, must.Sprint(c.line))
		must.Eq(t, "", out)
		must.Eq(t, c.want, errs)
	}
}

// A word that resembles no command gets the help, and an argument is never taken for a command.
func TestMisspelled_none(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"explode"}, {"node"}, {"node", "drain", "node"}, {"-h", "nod"}, {"node", "-h"}, {"version"}} {
		must.Eq(t, "", cli.Misspelled(args, commands()))
	}
}
