// Command nodedrain shows what the library does. "nodedrain demo" drains nodes of
// a cluster that lives in this process and kills the leader half-way; "nodedrain sim"
// plays whole clusters in virtual time, with everything that may go wrong.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/hashicorp/cli"

	"github.com/seed-f9cf0b39/nodedrain/sim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs the command of that line and returns the exit code. What a command
// was asked for goes to out, why it could not to errs.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	simulate := simCommand{ctx: ctx, out: out, errs: errs, play: sim.Play}
	app := &cli.CLI{
		Name:        "nodedrain",
		Version:     version(),
		Args:        args,
		HelpWriter:  out,
		ErrorWriter: errs,
		Commands: map[string]cli.CommandFactory{
			"demo":       func() (cli.Command, error) { return &demoCommand{ctx: ctx, out: out, errs: errs}, nil },
			"sim":        func() (cli.Command, error) { return &simulate, nil },
			"sim run":    func() (cli.Command, error) { return &simRunCommand{simulate}, nil },
			"sim swarm":  func() (cli.Command, error) { return &simSwarmCommand{simulate}, nil },
			"sim shrink": func() (cli.Command, error) { return &simShrinkCommand{simulate}, nil },
			"version":    func() (cli.Command, error) { return &versionCommand{out: out}, nil },
		},
	}
	code, err := app.Run()
	if err != nil {
		fmt.Fprintln(errs, err)
		return 1
	}
	return code
}
