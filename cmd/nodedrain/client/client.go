package client

import (
	"flag"
	"fmt"
	"log/slog"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/node"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// Command is "nodedrain client".
type Command struct{ cli.Base }

// Flags are its flags.
type Flags struct {
	config         string
	check, destroy bool
}

// Set returns the set of the flags.
func (f *Flags) Set() *flag.FlagSet {
	set := flag.NewFlagSet("client", flag.ContinueOnError)
	set.StringVar(&f.config, "config", "", "")
	set.BoolVar(&f.check, "check", false, "")
	set.BoolVar(&f.destroy, "destroy", false, "")
	return set
}

// Synopsis returns the command in one line.
func (c *Command) Synopsis() string { return "Run the client of a node" }

// Help returns the help.
func (c *Command) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain client -config FILE

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

Options:

  -config FILE  The configuration. Required.
  -check        Check the configuration, print "The configuration is valid", and exit.
  -destroy      Remove the stopped client from this machine: stop its tasks and plugins,
                unmount its volumes, delete its data_dir, and exit. Drain the node first.
`)
}

// Run runs the command and returns its exit code.
func (c *Command) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *Command) run(args []string) (err error) {
	var f Flags
	about, err := cli.ParseArguments(f.Set(), "client", args)
	switch {
	case err != nil:
		return err
	case len(about) > 0:
		return cli.UsageError("client", "This command takes no arguments")
	case f.config == "":
		return cli.UsageError("client", "-config is required: it names the configuration file")
	case f.check && f.destroy:
		return cli.UsageError("client", "-check and -destroy exclude each other")
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
		Config: settings, LogKeeper: []string{cli.LogKeeper}, Version: strings.TrimPrefix(cli.Version(), "nodedrain "), Logger: c.logger(settings.Log),
	}
	if f.destroy {
		// It runs a client without servers, whose usual messages would mislead.
		settings.Log.Level = max(settings.Log.Level, slog.LevelWarn)
		options.Logger = c.logger(settings.Log)
		if err := node.Destroy(c.Ctx, options, false); err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "The client is removed, and so is %s\n", settings.DataDir)
		return nil
	}
	n, err := node.Open(c.Ctx, options)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "Node %q runs as %s\n", settings.Name, n.ID())
	err = n.Run(c.Ctx)
	if closed := n.Close(); err == nil {
		err = closed
	}
	return err
}

// logger returns a logger as the configuration says.
func (c *Command) logger(l config.Log) *slog.Logger {
	options := &slog.HandlerOptions{Level: l.Level}
	if l.JSON {
		return slog.New(slog.NewJSONHandler(c.Errs, options))
	}
	return slog.New(slog.NewTextHandler(c.Errs, options))
}
