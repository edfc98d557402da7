package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/server"
)

// command is one run of "nodedrain demo".
type command struct {
	Config
	json     bool
	logLevel string
}

// Command is "nodedrain demo".
func Command() *cli.Command {
	c := &command{logLevel: "off"}
	c.Seed = 1
	return &cli.Command{
		Short: "Drain nodes of a cluster in this process and kill the leader half-way",
		Description: `
  Starts three raft servers, a scheduler and simulated clients in this process, registers
  a cluster, drains several nodes at once, kills the leader when half of the work is done,
  and prints a summary.

  The exit code is 0 only if all of these hold:
    - every drain completed, or reached its deadline if it had one;
    - the leader was killed while drains were running;
    - the witness, which shares no code with the drainer, found no violation:
      no paced mark took a group below its limit.

  Tasks are simulated and run faster than real ones, by the time scale. Raft and the
  drainer are real and are not scaled. "nodedrain dev" runs real tasks.
`,
		Options: cli.Options{
			cli.Flag(&c.Dir, "cluster DIR", `Load the cluster from DIR/nodes.csv and DIR/pods.csv, in the format of Alibaba's cluster-trace-gpu-v2023: running pods of equal request and QoS make one job. Without it a cluster is generated.`),
			cli.Flag(&c.Nodes, "nodes N", fmt.Sprintf("Nodes of the generated cluster. Default: %d.", DefaultNodes)),
			cli.Flag(&c.Drains, "drains N", `Nodes to drain at once, at most half of the nodes. Default: 5% of a loaded cluster, a sixth of a generated one.`),
			cli.Flag(&c.Deadline, "deadline D", fmt.Sprintf(`Deadline of drains, in simulated time. The drains of nodes with batch work and every second of the others have it. Default: %s.`, DefaultDeadline)),
			cli.Flag(&c.Seed, "seed N", "Seed of the generated cluster and of the choice of nodes to drain."),
			cli.Flag(&c.TimeScale, "time-scale X", fmt.Sprintf("Simulated seconds per real second. Default: %d.", DefaultTimeScale)),
			cli.Flag(&c.Servers, "servers N", fmt.Sprintf("Raft servers. Default: %d.", server.DefaultServers)),
			cli.Flag(&c.Loopback, "loopback", "Connect the servers over TCP on the loopback interface instead of in memory."),
			cli.Flag(&c.Timeout, "timeout D", fmt.Sprintf("Real time after which the demo gives up. Default: %s.", DefaultTimeout)),
			cli.Flag(&c.json, "json", "Print only a summary in JSON. Its fields are those of type Summary in package demo."),
			cli.Flag(&c.logLevel, "log-level LEVEL", "Print the servers' logs to standard error: trace, debug, info, warn, error or off."),
		},
		Positive: true,
		Run:      c.run,
	}
}

// errFailed reports a failed demonstration. The summary has been printed.
var errFailed = errors.New("the demonstration failed; the summary gives the reasons")

func (c *command) run(call *cli.Call) error {
	level := hclog.LevelFromString(c.logLevel)
	if level == hclog.NoLevel {
		return fmt.Errorf("-log-level is %q and must be trace, debug, info, warn, error or off", c.logLevel)
	}
	c.Logger = hclog.New(&hclog.LoggerOptions{Level: level, Output: call.Errs})
	if !c.json {
		c.Progress = call.Out
	} else {
		waiting := call.StartWaiting(func() string { return "the summary" })
		defer waiting.End()
	}
	summary, err := Run(call.Ctx, c.Config)
	switch {
	case err != nil && call.Ctx.Err() != nil:
		return fmt.Errorf("interrupted before all drains had ended: %w", err)
	case err != nil:
		return err
	}
	if err := c.print(call.Out, summary); err != nil {
		return fmt.Errorf("printing the summary: %w", err)
	}
	if !summary.OK {
		return errFailed
	}
	return nil
}

func (c *command) print(out io.Writer, s *Summary) error {
	if !c.json {
		return s.Write(out)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}
