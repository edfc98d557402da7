package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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
}

// Exit prints a command's error and returns its exit code.
func (c *Base) Exit(err error) int {
	if code, is := errors.AsType[ExitCode](err); is {
		return int(code)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(c.Errs, err)
	return 1
}

// Command is one command of the program. Help, completion and the parser of the command line follow from
// it. Its flags set variables: a command is used once.
type Command struct {
	// Short is the command in one line of a list.
	Short string
	// Help is the usage, the description and the options. Exits is the part about exit codes, or empty.
	Help, Exits string
	// Flags declares the command's own flags, or is nil.
	Flags func(*flag.FlagSet)
	// Connects adds the flags of a connection to servers. The connection is open while the command runs.
	Connects bool
	// Positive refuses numbers and durations that the command line sets to zero, except the seed.
	Positive bool
	// Formats adds the flags that print a server's answer unchanged.
	Formats bool
	// Args are the arguments.
	Args Arguments
	// FlagValues completes the values of flags, by their names without the hyphen.
	FlagValues complete.Flags
	// Failure is the exit code after an error. Zero means 1.
	Failure int
	// Run runs the command, or is nil if it has only subcommands.
	Run func(*Call) error
}

// Arguments are the arguments of a command. The zero value is a command without arguments.
type Arguments struct {
	// Least and Most are the smallest and the largest number of arguments. A Most below zero is no limit.
	Least, Most int
	// Usage is the error of another number.
	Usage string
	// Complete completes an argument, or is nil.
	Complete Completion
	// Verbatim means that flags end at the first argument.
	Verbatim bool
}

// Completion returns what completes an argument.
type Completion func(*Base) complete.Predictor

// NodeIDs completes a prefix of a node's id or name.
func NodeIDs(c *Base) complete.Predictor { return c.NodeIDs() }

// IDs completes a prefix of an id in a context of the search.
func IDs(context string) Completion {
	return func(c *Base) complete.Predictor { return c.IDs(context) }
}

// Files completes the name of a file.
func Files(*Base) complete.Predictor { return complete.PredictFiles("*") }

// Call is one run of a command.
type Call struct {
	Base
	// Name is the name of the command, as in "node drain".
	Name string
	Args []string
	// API is the connection, or nil if the command opens none.
	API *client.Client

	flags      *flag.FlagSet
	connection ConnectFlags
	output     OutputFlags
}

// Set reports whether the command line has a flag.
func (c *Call) Set(flagName string) bool { return SetFlags(c.flags)[flagName] }

// Exclusive refuses pairs of flags that exclude each other.
func (c *Call) Exclusive(pairs ...[2]string) error {
	if err := Exclusive(SetFlags(c.flags), pairs); err != nil {
		return c.UsageError(err.Error())
	}
	return nil
}

// UsageError returns the error of an invalid command line, with a pointer to the help.
func (c *Call) UsageError(text string) error { return UsageError(c.Name, text) }

// Again returns the flags that name the same servers, for a command line that the user can repeat.
func (c *Call) Again() string { return c.connection.Again() }

// Raw reports whether a flag requests the server's answer instead of tables.
func (c *Call) Raw() bool { return c.output.Raw() }

// PrintRaw prints the server's answer as the flags require. It prints nothing if the template fails.
func (c *Call) PrintRaw(answer any) error { return PrintRaw(&c.output, c.Out, answer) }

// entry is a command in the table of the program.
type entry struct {
	base Base
	name string
	*Command
}

// Parent returns a command that only has subcommands.
func Parent(short, help string) func() *Command {
	return func() *Command { return &Command{Short: short, Help: help} }
}

// Entry returns the factory of a command with a name.
func (c Base) Entry(name string, command func() *Command) cli.CommandFactory {
	return func() (cli.Command, error) { return &entry{c, name, command()}, nil }
}

func (e *entry) Synopsis() string { return e.Short }

func (e *entry) Help() string {
	text := strings.TrimSpace(e.Command.Help)
	if e.Formats {
		text += "\n" + OutputHelp
	}
	if e.Connects {
		text += "\n" + ConnectHelp
	}
	return strings.TrimRight(text, "\n") + e.Exits
}

// prepare returns a call with all flags of the command.
func (e *entry) prepare() *Call {
	c := &Call{Base: e.base, Name: e.name, flags: flag.NewFlagSet(e.name, flag.ContinueOnError)}
	c.flags.SetOutput(io.Discard) // Run prints the error
	if e.Connects {
		c.connection.Set(c.flags)
	}
	if e.Formats {
		c.output.Set(c.flags)
	}
	if e.Flags != nil {
		e.Flags(c.flags)
	}
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
	code := e.base.Exit(err)
	if _, is := errors.AsType[ExitCode](err); err != nil && !is && e.Failure != 0 {
		return e.Failure
	}
	return code
}

func (e *entry) run(args []string) (err error) {
	c := e.prepare()
	if c.Args, err = e.Args.parse(c.flags, e.name, args); err != nil {
		return err
	}
	if e.Positive {
		if err := RequirePositive(c.flags); err != nil {
			return err
		}
	}
	if e.Connects {
		if c.API, err = c.Connect(&c.connection); err != nil {
			return err
		}
		defer c.API.Close()
	}
	return e.Command.Run(c)
}

func (a *Arguments) parse(set *flag.FlagSet, name string, args []string) (parsed []string, err error) {
	if a.Verbatim {
		err = Parse(set, name, args)
		parsed = set.Args()
	} else {
		parsed, err = ParseArguments(set, name, args)
	}
	if err == nil && (len(parsed) < a.Least || a.Most >= 0 && len(parsed) > a.Most) {
		usage := a.Usage
		if usage == "" {
			usage = "This command takes no arguments"
		}
		err = UsageError(name, usage)
	}
	return parsed, err
}

// AutocompleteArgs completes an argument.
func (e *entry) AutocompleteArgs() complete.Predictor {
	if e.Args.Complete == nil {
		return complete.PredictNothing
	}
	return e.Args.Complete(&e.base)
}

// AutocompleteFlags completes the flags.
func (e *entry) AutocompleteFlags() complete.Flags {
	flags := FlagPredictors(e.prepare().flags)
	for name, predictor := range e.FlagValues {
		flags["-"+name] = predictor
	}
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

// Warn prints the warnings of an answer, one on each line.
func (c *Base) Warn(warnings string) {
	for warning := range strings.SplitSeq(warnings, "\n") {
		if warning != "" {
			fmt.Fprintf(c.Errs, "Warning: %s\n", SingleLine(warning))
		}
	}
}
