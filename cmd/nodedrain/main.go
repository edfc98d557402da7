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
	operate := cli.Base{Ctx: ctx, Stdio: std}
	all := cli.Program{
		"node":              operate.Entry("node", cli.Parent("Drain nodes and show their status", node.Help)),
		"node drain":        operate.Entry("node drain", node.Drain),
		"node eligibility":  operate.Entry("node eligibility", node.Eligibility),
		"node explain":      operate.Entry("node explain", node.Explain),
		"node status":       operate.Entry("node status", node.Status),
		"drain":             operate.Entry("drain", cli.Parent("Show drains of all nodes", drain.Help)),
		"drain list":        operate.Entry("drain list", drain.List),
		"job":               operate.Entry("job", cli.Parent("Write, plan, register, show and stop jobs", job.Help)),
		"job init":          operate.Entry("job init", job.Init),
		"job plan":          operate.Entry("job plan", job.Plan),
		"job run":           operate.Entry("job run", job.Run),
		"job status":        operate.Entry("job status", job.Status),
		"job stop":          operate.Entry("job stop", job.Stop),
		"alloc":             operate.Entry("alloc", cli.Parent("Show allocations, and act on their tasks", alloc.Help)),
		"alloc exec":        operate.Entry("alloc exec", alloc.Exec),
		"alloc fs":          operate.Entry("alloc fs", alloc.FS),
		"alloc logs":        operate.Entry("alloc logs", alloc.Logs),
		"alloc restart":     operate.Entry("alloc restart", alloc.Restart),
		"alloc signal":      operate.Entry("alloc signal", alloc.Signal),
		"alloc status":      operate.Entry("alloc status", alloc.Status),
		"alloc stop":        operate.Entry("alloc stop", alloc.Stop),
		"volume":            operate.Entry("volume", cli.Parent("Register volumes, show and detach them", volume.Help)),
		"volume register":   operate.Entry("volume register", volume.Register),
		"volume status":     operate.Entry("volume status", volume.Status),
		"volume detach":     operate.Entry("volume detach", volume.Detach),
		"volume deregister": operate.Entry("volume deregister", volume.Deregister),
		"plugin status":     operate.Entry("plugin status", plugin.Status),
		"eval":              operate.Entry("eval", cli.Parent("Show evaluations", eval.Help)),
		"eval status":       operate.Entry("eval status", eval.Status),
		"client":            operate.Entry("client", client.Command),
		"dev":               operate.Entry("dev", dev.Command),
		"operator":          operate.Entry("operator", cli.Parent("Save and restore the state of the servers", operator.Help)),
		"server":            operate.Entry("server", server.Command),
		"server join":       operate.Entry("server join", server.Join),
		"server members":    operate.Entry("server members", server.Members),
		"server recover":    operate.Entry("server recover", server.Recover),
		"server remove":     operate.Entry("server remove", server.Remove),

		"operator snapshot":         operate.Entry("operator snapshot", cli.Parent("Save, restore and inspect the state of the servers", operator.SnapshotHelp)),
		"operator snapshot inspect": operate.Entry("operator snapshot inspect", operator.SnapshotInspect),
		"operator snapshot restore": operate.Entry("operator snapshot restore", operator.SnapshotRestore),
		"operator snapshot save":    operate.Entry("operator snapshot save", operator.SnapshotSave),
		"system":                    operate.Entry("system", cli.Parent("Maintain the cluster's state", operator.SystemHelp)),
		"system gc":                 operate.Entry("system gc", operator.SystemGC),

		"demo":    operate.Entry("demo", demo.Command),
		"version": operate.Entry("version", version),

		"token":        operate.Entry("token", cli.Parent("Create tokens for the HTTP API", server.TokenHelp)),
		"token create": operate.Entry("token create", server.TokenCreate),
	}
	maps.Copy(all, plugin.Commands(operate))
	maps.Copy(all, sim.Commands(operate))
	return all
}

// version is "nodedrain version".
func version() *cli.Command {
	return &cli.Command{
		Short:       "Print the version",
		Description: "  Prints the version this command was built from.",
		Run: func(c *cli.Call) error {
			_, err := fmt.Fprintln(c.Out, cli.Version())
			return err
		},
	}
}
