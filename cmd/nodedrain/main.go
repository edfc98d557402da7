// Command nodedrain takes nodes of a cluster out of service, and shows what the library
// does. "nodedrain server" runs a server; "nodedrain node" and "nodedrain drain" ask
// servers over HTTP; "nodedrain demo" drains nodes of a cluster that lives in this process
// and kills the leader half-way; "nodedrain sim" plays whole clusters in virtual time,
// with everything that may go wrong.
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog/keeper"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/drain"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/eval"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/job"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/node"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/operator"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/plugin"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/server"
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
	return cli.Run(alloc.Untouched(args), commands(ctx, std), std)
}

// commands returns all commands.
func commands(ctx context.Context, std cli.Stdio) cli.Program {
	simulate := sim.NewBase(ctx, std)
	operate := cli.Base{Ctx: ctx, Stdio: std}
	all := cli.Program{
		"node":              cli.Factory(&cli.ParentCommand{Short: "Drain nodes and show their status", Long: node.Help}),
		"node drain":        cli.Factory(&node.DrainCommand{Base: operate}),
		"node eligibility":  cli.Factory(&node.EligibilityCommand{Base: operate}),
		"node explain":      cli.Factory(&node.ExplainCommand{Base: operate}),
		"node status":       cli.Factory(&node.StatusCommand{Base: operate}),
		"drain":             cli.Factory(&cli.ParentCommand{Short: "Show drains of all nodes", Long: drain.Help}),
		"drain list":        cli.Factory(&drain.ListCommand{Base: operate}),
		"job":               cli.Factory(&cli.ParentCommand{Short: "Write, plan, register, show and stop jobs", Long: job.Help}),
		"job init":          cli.Factory(&job.InitCommand{Base: operate}),
		"job plan":          cli.Factory(&job.PlanCommand{Base: operate}),
		"job run":           cli.Factory(&job.RunCommand{Base: operate}),
		"job status":        cli.Factory(&job.StatusCommand{Base: operate}),
		"job stop":          cli.Factory(&job.StopCommand{Base: operate}),
		"alloc":             cli.Factory(&cli.ParentCommand{Short: "Show allocations, and act on their tasks", Long: alloc.Help}),
		"alloc exec":        cli.Factory(&alloc.ExecCommand{Base: operate}),
		"alloc fs":          cli.Factory(&alloc.FSCommand{Base: operate}),
		"alloc logs":        cli.Factory(&alloc.LogsCommand{Base: operate}),
		"alloc restart":     cli.Factory(&alloc.RestartCommand{Base: operate}),
		"alloc signal":      cli.Factory(&alloc.SignalCommand{Base: operate}),
		"alloc status":      cli.Factory(&alloc.StatusCommand{Base: operate}),
		"alloc stop":        cli.Factory(&alloc.StopCommand{Base: operate}),
		"volume":            cli.Factory(&cli.ParentCommand{Short: "Register volumes, show and detach them", Long: volume.Help}),
		"volume register":   cli.Factory(&volume.RegisterCommand{Base: operate}),
		"volume status":     cli.Factory(&volume.StatusCommand{Base: operate}),
		"volume detach":     cli.Factory(&volume.DetachCommand{Base: operate}),
		"volume deregister": cli.Factory(&volume.DeregisterCommand{Base: operate}),
		"plugin status":     cli.Factory(&plugin.StatusCommand{Base: operate}),
		"eval":              cli.Factory(&cli.ParentCommand{Short: "Show evaluations", Long: eval.Help}),
		"eval status":       cli.Factory(&eval.StatusCommand{Base: operate}),
		"client":            cli.Factory(&client.Command{Base: operate}),
		"clients":           cli.Factory(&client.ClientsCommand{Base: operate}),
		"dev":               cli.Factory(&devCommand{operate}),
		"operator":          cli.Factory(&cli.ParentCommand{Short: "Save and restore the state of the servers", Long: operator.Help}),
		"server":            cli.Factory(&server.Command{Base: operate}),
		"server join":       cli.Factory(&server.JoinCommand{Base: operate}),
		"server members":    cli.Factory(&server.MembersCommand{Base: operate}),
		"server recover":    cli.Factory(&server.RecoverCommand{Base: operate}),
		"server remove":     cli.Factory(&server.RemoveCommand{Base: operate}),

		"operator snapshot":         cli.Factory(&cli.ParentCommand{Short: "Save, restore and inspect the state of the servers", Long: operator.SnapshotHelp}),
		"operator snapshot inspect": cli.Factory(&operator.SnapshotInspectCommand{Base: operate}),
		"operator snapshot restore": cli.Factory(&operator.SnapshotRestoreCommand{Base: operate}),
		"operator snapshot save":    cli.Factory(&operator.SnapshotSaveCommand{Base: operate}),
		"system":                    cli.Factory(&cli.ParentCommand{Short: "Maintain the cluster's state", Long: operator.SystemHelp}),
		"system gc":                 cli.Factory(&operator.SystemGCCommand{Base: operate}),

		"demo":       cli.Factory(&demoCommand{ctx: ctx, out: std.Out, errs: std.Errs}),
		"sim":        cli.Factory(&simulate),
		"sim run":    cli.Factory(&sim.RunCommand{Base: simulate}),
		"sim swarm":  cli.Factory(&sim.SwarmCommand{Base: simulate}),
		"sim shrink": cli.Factory(&sim.ShrinkCommand{Base: simulate}),
		"version":    cli.Factory(&versionCommand{out: std.Out}),

		"token":        cli.Factory(&cli.ParentCommand{Short: "Create tokens for the HTTP API", Long: server.TokenHelp}),
		"token create": cli.Factory(&server.TokenCreateCommand{Out: std.Out, Errs: std.Errs}),
	}
	maps.Copy(all, plugin.Commands(operate))
	return all
}

// versionCommand is "nodedrain version".
type versionCommand struct{ out io.Writer }

func (c *versionCommand) Synopsis() string { return "Print the version" }

func (c *versionCommand) Help() string {
	return "Usage: nodedrain version\n\n  Prints the version this command was built from."
}

func (c *versionCommand) Run([]string) int {
	fmt.Fprintln(c.out, cli.Version())
	return 0
}
