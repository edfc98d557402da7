package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/hashicorp/cli"
)

// LogKeeper is the subcommand that keeps the log of a task. Clients run it, people do not: the help
// does not show it.
const LogKeeper = "logkeeper"

// Program holds commands by their names, as in "node drain".
type Program map[string]func() *Command

// Run runs the one of the commands that args name and returns the exit code. Results go to base.Out,
// errors to base.Errs.
func Run(args []string, all Program, base Base) int {
	if text := Misspelled(args, all); text != "" {
		fmt.Fprintln(base.Errs, text)
		return exitUnknownCommand
	}
	entries := map[string]cli.CommandFactory{}
	for name, command := range all {
		entries[name] = func() (cli.Command, error) { return &entry{base, name, command()}, nil }
	}
	app := &cli.CLI{
		Name:         "nodedrain",
		Version:      Version(),
		Args:         args,
		HelpWriter:   base.Out,
		ErrorWriter:  base.Errs,
		Commands:     entries,
		Autocomplete: true,
	}
	code, err := app.Run()
	if err != nil {
		fmt.Fprintln(base.Errs, err)
		return 1
	}
	return code
}

// Version returns the module's version, and for a build from a checkout its commit.
func Version() string {
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
