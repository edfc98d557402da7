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

	"github.com/hashicorp/cli"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog/keeper"
	"github.com/seed-f9cf0b39/nodedrain/sim"
)

func main() { os.Exit(process()) }

// process runs the command of this process and returns the exit code.
func process() int {
	if len(os.Args) > 1 && os.Args[1] == logKeeper {
		return keeper.Main(os.Args[2:], os.Stdout, os.Stderr) // before all that costs memory
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	return run(ctx, os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, errs: os.Stderr, getenv: os.Getenv})
}

// run runs the command that args name and returns the exit code. Results go to std.out,
// errors to std.errs.
func run(ctx context.Context, args []string, std stdio) int {
	all := commands(ctx, std)
	if what := misspelled(args, all); what != "" {
		fmt.Fprintln(std.errs, what)
		return exitUnknownCommand
	}
	app := &cli.CLI{
		Name:         "nodedrain",
		Version:      version(),
		Args:         untouched(args),
		HelpWriter:   std.out,
		ErrorWriter:  std.errs,
		Commands:     all,
		Autocomplete: true,
	}
	code, err := app.Run()
	if err != nil {
		fmt.Fprintln(std.errs, err)
		return 1
	}
	return code
}

// commands returns all commands.
func commands(ctx context.Context, std stdio) map[string]cli.CommandFactory {
	simulate := simCommand{ctx: ctx, out: std.out, errs: std.errs, getenv: std.getenv, play: sim.Play}
	operate := operatorCommand{ctx: ctx, stdio: std}
	all := map[string]cli.CommandFactory{
		"node":              is(&parentCommand{"Drain nodes and show their status", nodeHelp}),
		"node drain":        is(&nodeDrainCommand{operate}),
		"node eligibility":  is(&nodeEligibilityCommand{operate}),
		"node explain":      is(&nodeExplainCommand{operate}),
		"node status":       is(&nodeStatusCommand{operate}),
		"drain":             is(&parentCommand{"Show drains of all nodes", drainHelp}),
		"drain list":        is(&drainListCommand{operate}),
		"job":               is(&parentCommand{"Write, plan, register, show and stop jobs", jobHelp}),
		"job init":          is(&jobInitCommand{operate}),
		"job plan":          is(&jobPlanCommand{operate}),
		"job run":           is(&jobRunCommand{operate}),
		"job status":        is(&jobStatusCommand{operate}),
		"job stop":          is(&jobStopCommand{operate}),
		"alloc":             is(&parentCommand{"Show allocations, and act on their tasks", allocHelp}),
		"alloc exec":        is(&allocExecCommand{operate}),
		"alloc fs":          is(&allocFSCommand{operate}),
		"alloc logs":        is(&allocLogsCommand{operate}),
		"alloc restart":     is(&allocRestartCommand{operate}),
		"alloc signal":      is(&allocSignalCommand{operate}),
		"alloc status":      is(&allocStatusCommand{operate}),
		"alloc stop":        is(&allocStopCommand{operate}),
		"volume":            is(&parentCommand{"Register volumes, show and detach them", volumeHelp}),
		"volume register":   is(&volumeRegisterCommand{operate}),
		"volume status":     is(&volumeStatusCommand{operate}),
		"volume detach":     is(&volumeDetachCommand{operate}),
		"volume deregister": is(&volumeDeregisterCommand{operate}),
		"plugin status":     is(&pluginStatusCommand{operate}),
		"eval":              is(&parentCommand{"Show evaluations", evalHelp}),
		"eval status":       is(&evalStatusCommand{operate}),
		"client":            is(&clientCommand{operate}),
		"clients":           is(&clientsCommand{operate}),
		"dev":               is(&devCommand{operate}),
		"operator":          is(&parentCommand{"Save and restore the state of the servers", operatorHelp}),
		"server":            is(&serverCommand{operate}),
		"server join":       is(&serverJoinCommand{operate}),
		"server members":    is(&serverMembersCommand{operate}),
		"server recover":    is(&serverRecoverCommand{operate}),
		"server remove":     is(&serverRemoveCommand{operate}),

		"operator snapshot":         is(&parentCommand{"Save, restore and inspect the state of the servers", snapshotHelp}),
		"operator snapshot inspect": is(&snapshotInspectCommand{operate}),
		"operator snapshot restore": is(&snapshotRestoreCommand{operate}),
		"operator snapshot save":    is(&snapshotSaveCommand{operate}),
		"system":                    is(&parentCommand{"Maintain the cluster's state", systemHelp}),
		"system gc":                 is(&systemGCCommand{operate}),

		"demo":       is(&demoCommand{ctx: ctx, out: std.out, errs: std.errs}),
		"sim":        is(&simulate),
		"sim run":    is(&simRunCommand{simulate}),
		"sim swarm":  is(&simSwarmCommand{simulate}),
		"sim shrink": is(&simShrinkCommand{simulate}),
		"version":    is(&versionCommand{out: std.out}),

		"token":        is(&parentCommand{"Create tokens for the HTTP API", tokenHelp}),
		"token create": is(&tokenCreateCommand{out: std.out, errs: std.errs}),
	}
	maps.Copy(all, pluginCommands(operate))
	return all
}

// versionCommand is "nodedrain version".
type versionCommand struct{ out io.Writer }

func (c *versionCommand) Synopsis() string { return "Print the version" }

func (c *versionCommand) Help() string {
	return "Usage: nodedrain version\n\n  Prints the version this command was built from."
}

func (c *versionCommand) Run([]string) int {
	fmt.Fprintln(c.out, version())
	return 0
}
