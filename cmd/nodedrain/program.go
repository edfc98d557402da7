package main

import (
	"runtime/debug"

	"github.com/hashicorp/cli"
)

// logKeeper is the subcommand that keeps the log of a task. Clients run it, people do not: the help
// does not show it.
const logKeeper = "logkeeper"

// is returns a factory of an existing command.
func is(c cli.Command) cli.CommandFactory {
	return func() (cli.Command, error) { return c, nil }
}

// version returns the module's version, and for a build from a checkout its commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "nodedrain, built without module information"
	}
	v := "nodedrain " + info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && info.Main.Version == "(devel)" {
			v += " " + s.Value
		}
	}
	return v
}
