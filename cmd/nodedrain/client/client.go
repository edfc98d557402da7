package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/node"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// flags are the flags of "nodedrain client".
type flags struct {
	config                string
	check, destroy, force bool
}

// Command is "nodedrain client".
func Command() *cli.Command {
	f := new(flags)
	return &cli.Command{
		Short: "Run the client of a node",
		Forms: []string{"-config FILE"},
		Description: `
  Runs the client of this node: it registers the node with the servers, starts and stops
  the tasks that they place here, and reports their states. Tasks run through task
  drivers: raw_exec and mock, which this program contains, and plugins in the folder
  plugin_dir of the configuration.

  SIGINT and SIGTERM end the client but no task: tasks, their logs and drivers continue,
  and the next client takes them over. To end the tasks first, drain the node.

  The configuration is a file in HCL or JSON, with a name that ends with .hcl or .json:

    data_dir = "/var/lib/nodedrain"
    servers {
      addresses  = ["https://s1.example:4646", "https://s2.example:4646"]
      ca_file    = "/etc/nodedrain/ca.pem"
      token_file = "/etc/nodedrain/token"
    }
    plugin "raw_exec" {}

  docs/client.md describes every key, the files of a client, and what to do when something
  fails.
`,
		Options: cli.Options{
			cli.Flag(&f.config, "config FILE", "The configuration. Required."),
			cli.Flag(&f.check, "check", `Check the configuration, print "The configuration is valid", and exit.`),
			cli.Flag(&f.destroy, "destroy", "Remove the stopped client from this machine: stop its tasks and plugins, unmount its volumes, delete its data_dir, and exit. Drain the node first."),
			cli.Flag(&f.force, "force", "With -destroy: also delete data of ephemeral disks that waits for a replacement."),
		},
		Run: f.run,
	}
}

func (f *flags) run(c *cli.Call) error {
	switch {
	case f.config == "":
		return c.UsageError("-config is required: it names the configuration file")
	case f.check && f.destroy:
		return c.UsageError("-check and -destroy exclude each other")
	case f.force && !f.destroy:
		return c.UsageError("-force needs -destroy")
	}
	settings, err := config.Load(f.config)
	if err != nil {
		return err
	}
	if f.check {
		if err := node.CheckPlugins(settings); err != nil {
			return err
		}
		fmt.Fprintln(c.Out, "The configuration is valid")
		return nil
	}
	options := node.Options{
		Config: settings, LogKeeper: []string{cli.LogKeeper}, Version: strings.TrimPrefix(cli.Version(), "nodedrain "), Logger: logger(c.Errs, settings.Log),
	}
	if f.destroy {
		// It runs a client without servers, whose usual messages would mislead.
		settings.Log.Level = max(settings.Log.Level, slog.LevelWarn)
		options.Logger = logger(c.Errs, settings.Log)
		if err := node.Destroy(c.Ctx, options, node.Removal{KeptData: f.force}); err != nil {
			return err
		}
		if _, err := os.Lstat(settings.DataDir); err == nil {
			fmt.Fprintf(c.Out, "The client is removed. A file system is mounted at %s, which is empty now\n", settings.DataDir)
			return nil
		}
		fmt.Fprintf(c.Out, "The client is removed, and so is %s\n", settings.DataDir)
		return nil
	}
	n, err := node.Open(c.Ctx, options)
	switch {
	case c.Ctx.Err() != nil && errors.Is(err, context.Canceled): // a supervisor takes another exit code for a failure
		options.Logger.Info("the client was stopped before it had started", "error", err)
		return nil
	case err != nil:
		return err
	}
	fmt.Fprintf(c.Out, "Node %q runs as %s\n", settings.Name, n.ID())
	err = n.Run(c.Ctx)
	if closed := n.Close(); err == nil {
		err = closed
	}
	return err
}

// logger returns the logger of a configuration.
func logger(out io.Writer, l config.Log) *slog.Logger {
	options := &slog.HandlerOptions{Level: l.Level}
	if l.JSON {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}
