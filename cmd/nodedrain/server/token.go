package server

import (
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/server/access"
)

// TokenHelp is the help of "nodedrain token".
const TokenHelp = `Usage: nodedrain token <command> [options]

  Creates tokens for the HTTP API of a server.`

// TokenCreateCommand is "nodedrain token create".
type TokenCreateCommand struct{ Out, Errs io.Writer }

// Synopsis returns the command in one line.
func (c *TokenCreateCommand) Synopsis() string { return "Create a token for the HTTP API" }

// Help returns the help.
func (c *TokenCreateCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain token create -name NAME -right RIGHT

  Creates a random secret for the HTTP API and prints it with its line of the tokens
  file. Give the secret to the user, who sets it with -token or in NOMAD_TOKEN. Add
  the line to the tokens file of every server. The secret is not stored and cannot be
  computed from the line.

  The command contacts no server and writes no file. A server reads its tokens file
  again on SIGHUP.

Options:

  -name NAME    The user's name: letters, digits and . _ - @. It is not secret. It
                appears in the log and with the user's changes.
  -right RIGHT  "write" can read and change everything. "read" can read all but the
                environments and driver configurations of tasks and the secrets, contexts
                and mount options of volumes. "node" can only register nodes: for the
                token file of a node's client.
`)
}

// Run runs the command and returns its exit code.
func (c *TokenCreateCommand) Run(args []string) int {
	if err := c.run(args); err != nil {
		fmt.Fprintln(c.Errs, err)
		return 1
	}
	return 0
}

func (c *TokenCreateCommand) run(args []string) error {
	const more = `"nodedrain token create -h" lists the options`
	set := flag.NewFlagSet("token create", flag.ContinueOnError)
	set.SetOutput(io.Discard) // Run prints the error
	name := set.String("name", "", "")
	rightName := set.String("right", "", "")
	switch err := cli.Parse(set, "token create", args); {
	case err != nil:
		return err
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
	_, err = fmt.Fprintf(c.Out, "Secret, shown this once:  %s\nLine of the tokens file:  %s\n", secret.Reveal(), token.Line())
	return err
}
