package server

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/server/access"
)

// TokenHelp is the help of "nodedrain token".
const TokenHelp = `
  Creates tokens for the HTTP API of a server.`

// TokenCreate is "nodedrain token create".
func TokenCreate() *cli.Command {
	var name, rightName string
	return &cli.Command{
		Short: "Create a token for the HTTP API",
		Forms: []string{"-name NAME -right RIGHT"},
		Description: `
  Creates a random secret for the HTTP API and prints it with its line of the tokens
  file. Give the secret to the user, who sets it with -token or in NOMAD_TOKEN. Add
  the line to the tokens file of every server. The secret is not stored and cannot be
  computed from the line.

  The command contacts no server and writes no file. A server reads its tokens file
  again on SIGHUP.
`,
		Options: cli.Options{
			cli.Flag(&name, "name NAME", "The user's name: letters, digits and . _ - @. It is not secret. It appears in the log and with the user's changes."),
			cli.Flag(&rightName, "right RIGHT", `"write" can read and change everything. "read" can read all but the environments and driver configurations of tasks `+
				`and the secrets, contexts and mount options of volumes. "node" can only register nodes: for the token file of a node's client.`),
		},
		Run: func(c *cli.Call) error {
			if name == "" || rightName == "" {
				return c.UsageError("-name and -right are required")
			}
			right, err := access.ParseRight(rightName)
			if err != nil {
				return fmt.Errorf("-right is %q: %w", rightName, err)
			}
			secret, token, err := access.Generate(name, right)
			if err != nil {
				return fmt.Errorf("-name is %q: %w", name, err)
			}
			_, err = fmt.Fprintf(c.Out, "Secret, shown this once:  %s\nLine of the tokens file:  %s\n", secret.Reveal(), token.Line())
			return err
		},
	}
}
