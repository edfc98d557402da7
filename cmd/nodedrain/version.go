package main

import (
	"fmt"
	"io"
	"runtime/debug"
)

// versionCommand is "nodedrain version".
type versionCommand struct{ out io.Writer }

func (c *versionCommand) Synopsis() string { return "Print the version" }

func (c *versionCommand) Help() string {
	return "Usage: nodedrain version\n\n  Prints the version this command was built from."
}

func (c *versionCommand) Run([]string) int {
	fmt.Fprintln(c.out, version())
	return 0
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
