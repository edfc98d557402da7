package main

import (
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/access"
)

const tokenHelp = `Usage: nodedrain token <command> [options]

  Makes the tokens that the HTTP API of a server asks for.`

// tokenCreateCommand is "nodedrain token create".
type tokenCreateCommand struct{ out, errs io.Writer }

func (c *tokenCreateCommand) Synopsis() string { return "Draw a token for the HTTP API" }

func (c *tokenCreateCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain token create -name NAME -right RIGHT

  Draws a secret for the HTTP API and prints it with the line of a tokens file that
  lets its bearer in. Give the secret to its bearer, who shows it with -token or in
  NOMAD_TOKEN, and add the line to the file of every server: nothing else keeps the
  secret, and nobody can read it from the line.

  The command asks no server and writes no file. A server reads its tokens file
  again when it receives SIGHUP.

Options:

  -name NAME    Whose token it is: letters, digits and . _ - @. It is no secret and
                stands in the log, and with what its bearer has changed.
  -right RIGHT  "read" to see everything, "write" to change it too.
`)
}

func (c *tokenCreateCommand) Run(args []string) int {
	if err := c.run(args); err != nil {
		fmt.Fprintln(c.errs, err)
		return 1
	}
	return 0
}

func (c *tokenCreateCommand) run(args []string) error {
	const more = `"nodedrain token create -h" lists the options`
	set := flag.NewFlagSet("token create", flag.ContinueOnError)
	set.SetOutput(io.Discard) // Run tells what was wrong
	name := set.String("name", "", "")
	rightName := set.String("right", "", "")
	switch err := set.Parse(args); {
	case err != nil:
		return fmt.Errorf("%w; %s", err, more)
	case set.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; %s", set.Arg(0), more)
	case *name == "" || *rightName == "":
		return fmt.Errorf("-name and -right are required; %s", more)
	}
	right, err := access.ParseRight(*rightName)
	if err != nil {
		return fmt.Errorf("-right is %q: %w", *rightName, err)
	}
	secret, token, err := access.Generate(*name, right)
	if err != nil {
		return fmt.Errorf("-name is %q: %w", *name, err)
	}
	_, err = fmt.Fprintf(c.out, "Secret, shown this once:  %s\nLine of the tokens file:  %s\n", secret.Reveal(), token.Line())
	return err
}
