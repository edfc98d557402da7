package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/hashicorp/cli"
)

// LogKeeper is the subcommand that keeps the log of a task. Clients run it, people do not: the help
// does not show it.
const LogKeeper = "logkeeper"

// Program holds the factories of commands by their names.
type Program map[string]cli.CommandFactory

// Run runs the one of the commands that args name and returns the exit code. Results go to std.out,
// errors to std.errs.
func Run(args []string, all Program, std Stdio) int {
	if text := Misspelled(args, all); text != "" {
		fmt.Fprintln(std.Errs, text)
		return exitUnknownCommand
	}
	app := &cli.CLI{
		Name:         "nodedrain",
		Version:      Version(),
		Args:         args,
		HelpWriter:   std.Out,
		ErrorWriter:  std.Errs,
		Commands:     all,
		Autocomplete: true,
	}
	code, err := app.Run()
	if err != nil {
		fmt.Fprintln(std.Errs, err)
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
