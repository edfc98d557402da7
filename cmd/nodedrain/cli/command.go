package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/cli"
	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// Stdio holds the input, the outputs and the environment of a command.
type Stdio struct {
	In        io.Reader
	Out, Errs io.Writer
	// Getenv is os.Getenv, except in tests.
	Getenv func(string) string
}

// Base is what every run of a command has.
type Base struct {
	Ctx context.Context // ends when the user interrupts
	Stdio
	// Transport is that of [client.Config]: nil, except in tests.
	Transport http.RoundTripper
}

// Command is one command of the program. Help, completion and the parser of the command line follow from
// it. Its flags set variables: a command is used once.
type Command struct {
	// Short is the command in one line of a list.
	Short string
	// Forms are the command lines of the help, without the command. Empty is one, with all arguments.
	Forms []string
	// Description is the text between usage and options. Exits explains the exit codes, or is empty.
	Description, Exits string
	// Options are the command's own flags.
	Options Options
	// Connects adds the flags of a connection to servers. The connection is open while the command runs.
	Connects bool
	// Positive refuses numbers and durations that the command line sets to zero, except the seed.
	// Configurations read zero as the default, but a user who sets zero does not expect the default.
	Positive bool
	// Formats adds the flags that print a server's answer unchanged.
	Formats bool
	// Args are the arguments.
	Args Arguments
	// CountsArgs means that the command itself checks the number of its arguments.
	CountsArgs bool
	// Verbatim means that flags end at the first argument. A "--" after it is left out.
	Verbatim bool
	// FlagValues completes the values of flags, by their names with the hyphen.
	FlagValues complete.Flags
	// Failure is the exit code after an error. Zero means 1.
	Failure int
	// Run runs the command, or is nil if it has only subcommands.
	Run func(*Call) error
}

// Call is one run of a command.
type Call struct {
	Base
	// Name is the name of the command, as in "node drain".
	Name string
	Args []string
	// API is the connection, or nil if the command opens none.
	API *client.Client

	flags      *flag.FlagSet
	connection connectFlags
	output     outputFlags
}

// Set reports whether the command line has a flag.
func (c *Call) Set(flagName string) (is bool) {
	c.flags.Visit(func(f *flag.Flag) { is = is || f.Name == flagName })
	return is
}

// Exclusive refuses pairs of flags that exclude each other.
func (c *Call) Exclusive(pairs ...[2]string) error {
	for _, p := range pairs {
		if c.Set(p[0]) && c.Set(p[1]) {
			return fmt.Errorf("-%s and -%s are mutually exclusive", p[0], p[1])
		}
	}
	return nil
}

// UsageError returns the error of an invalid command line, with a pointer to the help.
func (c *Call) UsageError(text string) error { return UsageError(c.Name, text) }

// SameServers returns the flags that name the same servers, for a command line that the user can repeat.
// It leaves the token out.
func (c *Call) SameServers() string {
	if c.connection.config.Address == "" {
		return ""
	}
	return " -address " + c.connection.config.Address
}

// entry is a command in the table of the program.
type entry struct {
	base Base
	name string
	*Command
}

// Parent returns a command that only has subcommands.
func Parent(short, description string) func() *Command {
	return func() *Command { return &Command{Short: short, Description: description} }
}

func (e *entry) Synopsis() string { return e.Short }

func (e *entry) Help() string {
	options := e.options(new(Call))
	forms := e.Forms
	switch {
	case len(forms) > 0:
	case e.Command.Run == nil:
		forms = []string{"<command> [options]"}
	case len(options) > 0:
		forms = []string{"[options] " + string(e.Args)}
	default:
		forms = []string{string(e.Args)}
	}
	text := ""
	for i, form := range forms {
		text += strings.TrimRight(fmt.Sprintf("%-6s nodedrain %s %s", []string{"Usage:", ""}[min(i, 1)], e.name, form), " ") + "\n"
	}
	text += "\n" + strings.Trim(e.Description, "\n") + "\n" + options.Help()
	if e.Exits != "" {
		text += "\nExit code:\n\n" + strings.Trim(e.Exits, "\n")
	}
	return strings.TrimRight(text, "\n")
}

// options returns all flags of the command, which set the variables of a call.
func (e *entry) options(c *Call) Options {
	all := slices.Clone(e.Options)
	if e.Formats {
		all = append(all, c.output.options()...)
	}
	if e.Connects {
		all = append(all, c.connection.options()...)
	}
	return all
}

// prepare returns a call with all flags of the command.
func (e *entry) prepare() *Call {
	c := &Call{Base: e.base, Name: e.name, flags: flag.NewFlagSet(e.name, flag.ContinueOnError)}
	c.flags.SetOutput(io.Discard) // Run prints the error
	e.options(c).Set(c.flags)
	return c
}

// FlagSet returns the flags of a command, for a parser.
func (c *Command) FlagSet(name string) *flag.FlagSet {
	return (&entry{name: name, Command: c}).prepare().flags
}

func (e *entry) Run(args []string) int {
	if e.Command.Run == nil {
		return cli.RunResultHelp
	}
	err := e.run(args)
	if code, is := errors.AsType[ExitCode](err); is {
		return int(code)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(e.base.Errs, err)
	return cmp.Or(e.Failure, 1)
}

func (e *entry) run(args []string) (err error) {
	c := e.prepare()
	if c.Args, err = e.parse(c.flags, args); err != nil {
		return err
	}
	if err := c.positive(); e.Positive && err != nil {
		return err
	}
	if e.Connects {
		if c.API, err = c.Connect(&c.connection); err != nil {
			return err
		}
		defer c.API.Close()
	}
	return e.Command.Run(c)
}

// positive refuses numbers and durations that are set to zero, except the seed.
func (c *Call) positive() (err error) {
	c.flags.Visit(func(f *flag.Flag) {
		if v := f.Value.String(); f.Name != "seed" && (v == "0" || v == "0s") {
			err = fmt.Errorf("-%s is %s and must be above 0", f.Name, v)
		}
	})
	return err
}

// parse returns the arguments of a command line.
func (e *entry) parse(set *flag.FlagSet, args []string) (parsed []string, err error) {
	if e.Verbatim {
		err = parseFlags(set, e.name, args)
		if parsed = set.Args(); len(parsed) > 1 && parsed[1] == "--" {
			parsed = slices.Delete(parsed, 1, 2)
		}
	} else {
		parsed, err = parseArguments(set, e.name, args)
	}
	if least, most := e.Args.bounds(); err == nil && !e.CountsArgs && (len(parsed) < least || len(parsed) > most) {
		err = UsageError(e.name, e.Args.usage())
	}
	return parsed, err
}

// AutocompleteArgs completes an argument.
func (e *entry) AutocompleteArgs() complete.Predictor { return e.base.predictor(e.Args) }

// AutocompleteFlags completes the flags.
func (e *entry) AutocompleteFlags() complete.Flags {
	flags := e.options(new(Call)).predictors()
	maps.Copy(flags, e.FlagValues)
	return flags
}

// ExitCode is the error of a command that has already printed everything.
type ExitCode int

func (c ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// ExitInterrupted is the exit code of a command that the user interrupted.
const ExitInterrupted ExitCode = 130

// Error is an error with the text of Nomad's command, including capitals and full stops:
// users and scripts search for these texts.
type Error string

func (s Error) Error() string { return string(s) }

// Errorf returns a formatted [Error].
func Errorf(format string, args ...any) error { return Error(fmt.Sprintf(format, args...)) }

// UsageError returns the error of an invalid command line, with a pointer to the help.
func UsageError(command, text string) error {
	return Errorf("%s\nFor additional help try 'nodedrain %s -help'", text, command)
}

// ReadFile reads a file, or the input for "-".
func (c *Base) ReadFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(c.In)
	}
	return os.ReadFile(name)
}

// Warn prints the warnings of an answer, one on each line.
func (c *Base) Warn(warnings string) {
	for warning := range strings.SplitSeq(warnings, "\n") {
		if warning != "" {
			fmt.Fprintf(c.Errs, "Warning: %s\n", SingleLine(warning))
		}
	}
}
