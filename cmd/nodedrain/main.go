// Command nodedrain takes nodes of a cluster out of service, and shows what the library
// does. "nodedrain server" runs a server; "nodedrain node" and "nodedrain drain" call
// servers over HTTP; "nodedrain demo" drains nodes of a cluster that lives in this process
// and kills the leader half-way; "nodedrain sim" plays whole clusters in virtual time,
// with everything that may go wrong.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog/keeper"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/demo"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/dev"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/drain"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/eval"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/job"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/node"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/operator"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/plugin"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/service"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/volume"
)

func main() { os.Exit(process()) }

// process runs the command of this process and returns the exit code.
func process() int {
	if len(os.Args) > 1 && os.Args[1] == cli.LogKeeper {
		return keeper.Main(os.Args[2:], os.Stdout, os.Stderr) // before all that costs memory
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	return run(ctx, os.Args[1:], cli.Stdio{In: os.Stdin, Out: os.Stdout, Errs: os.Stderr, Getenv: os.Getenv})
}

// run runs the command that args name and returns the exit code. Results go to std.out,
// errors to std.errs.
func run(ctx context.Context, args []string, std cli.Stdio) int {
	return cli.Run(alloc.Untouched(args), commands(), cli.Base{Ctx: ctx, Stdio: std})
}

// commands returns all commands.
func commands() cli.Program {
	all := cli.Program{
		"node":              cli.Parent("Drain nodes and show their status", node.Help),
		"node drain":        node.Drain,
		"node eligibility":  node.Eligibility,
		"node explain":      node.Explain,
		"node purge":        node.Purge,
		"node status":       node.Status,
		"drain":             cli.Parent("Show drains of all nodes, confirm and pause them", drain.Help),
		"drain confirm":     drain.Confirm,
		"drain pause":       drain.Pause,
		"drain plan":        drain.Plan,
		"drain resume":      drain.Resume,
		"drain show":        drain.Show,
		"drain list":        drain.List,
		"job":               cli.Parent("Write, check, plan, register, show and stop jobs", job.Help),
		"job init":          job.Init,
		"job plan":          job.Plan,
		"job run":           job.Run,
		"job status":        job.Status,
		"job stop":          job.Stop,
		"job validate":      job.Validate,
		"alloc":             cli.Parent("Show allocations, and act on their tasks", alloc.Help),
		"alloc checks":      alloc.Checks,
		"alloc exec":        alloc.Exec,
		"alloc fs":          alloc.FS,
		"alloc logs":        alloc.Logs,
		"alloc restart":     alloc.Restart,
		"alloc signal":      alloc.Signal,
		"alloc status":      alloc.Status,
		"alloc stop":        alloc.Stop,
		"volume":            cli.Parent("Register volumes, show and detach them", volume.Help),
		"volume register":   volume.Register,
		"volume status":     volume.Status,
		"volume detach":     volume.Detach,
		"volume deregister": volume.Deregister,
		"plugin status":     plugin.Status,
		"service":           cli.Parent("Show services", service.Help),
		"service info":      service.Info,
		"service list":      service.List,
		"eval":              cli.Parent("Show evaluations", eval.Help),
		"eval status":       eval.Status,
		"client":            client.Command,
		"dev":               dev.Command,
		"operator":          cli.Parent("Save and restore the state of the servers", operator.Help),
		"server":            server.Command,
		"server join":       server.Join,
		"server members":    server.Members,
		"server recover":    server.Recover,
		"server remove":     server.Remove,

		"operator snapshot":         cli.Parent("Save, restore and inspect the state of the servers", operator.SnapshotHelp),
		"operator snapshot inspect": operator.SnapshotInspect,
		"operator snapshot restore": operator.SnapshotRestore,
		"operator snapshot save":    operator.SnapshotSave,
		"system":                    cli.Parent("Maintain the cluster's state", operator.SystemHelp),
		"system gc":                 operator.SystemGC,

		"demo":    demo.Command,
		"version": version,

		"token":        cli.Parent("Create tokens for the HTTP API", server.TokenHelp),
		"token create": server.TokenCreate,
	}
	maps.Copy(all, plugin.Commands())
	maps.Copy(all, sim.Commands())
	return all
}

// version is "nodedrain version".
func version() *cli.Command {
	return &cli.Command{
		Short:       "Print the version",
		Description: "  Prints the version this command was built from.",
		CountsArgs:  true, // all are accepted
		Run: func(c *cli.Call) error {
			_, err := fmt.Fprintln(c.Out, cli.Version())
			return err
		},
	}
}
