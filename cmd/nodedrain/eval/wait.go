package eval

import (
	"cmp"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// ExitNotPlaced is the exit code of a job whose allocations cannot be placed, as of Nomad's
// command.
const ExitNotPlaced cli.ExitCode = 2

// evalWait bounds a blocking read of the evaluation.
const evalWait = 2 * time.Second

// EvaluatedPatience is how long the command continues without an answer from any server. It is
// longer than an election.
const EvaluatedPatience = 30 * time.Second

// watch prints lost connections, and what an evaluation waits for.
type watch struct {
	c       *cli.Call
	servers cli.Contact
	outage  cli.Outage
}

// begin begins to print, until the caller calls end.
func (w *watch) begin(id string) (end func()) {
	w.servers.Answered() // the change was made
	move := w.c.API.OnMove(func(m client.Move) { w.print(w.outage.Moved(m, w.servers.Patience)) })
	answered := w.c.Await(func() string {
		return cmp.Or(w.servers.Waits(w.c.API), "the scheduler to answer evaluation "+id)
	})
	return func() {
		answered()
		w.c.API.OnMove(move)
	}
}

// read reads the evaluation once.
func (w *watch) read(id string, index uint64) (*wire.Evaluation, client.Answer, error) {
	e, answer, err := w.c.API.Evaluation(w.c.Ctx, id, client.Query{Index: index, Wait: evalWait})
	switch {
	case err == nil:
		w.outage.Led()
		w.print(w.outage.Answered())
	case client.NoLeader(err):
		w.print(w.outage.Leaderless(client.WhyNoLeader(err), w.servers.Patience))
	}
	return e, answer, err
}

// print prints a line, unless it is empty.
func (w *watch) print(line string) {
	if line != "" {
		fmt.Fprintln(w.c.Errs, line)
	}
}

// Evaluated waits until the scheduler has answered an evaluation, and prints the result. done is what the
// command has changed already, as a sentence without its full stop. The error is [exitNotPlaced] if the
// scheduler answered and some allocations cannot be placed. After any other error the evaluation is nil.
func Evaluated(c *cli.Call, id, done string) (e *wire.Evaluation, err error) {
	w := &watch{c: c, servers: cli.Contact{Patience: EvaluatedPatience}}
	defer w.begin(cli.ShortID(id, false))()
	for index := uint64(0); e == nil || e.Status == string(cluster.EvalPending); {
		read, answer, err := cli.Retry(c.Ctx, &w.servers, func() (*wire.Evaluation, client.Answer, error) { return w.read(id, index) })
		switch {
		case c.Ctx.Err() != nil:
			fmt.Fprintf(c.Out, "%s, and the scheduler continues: nodedrain eval status %s\n", done, cli.ShortID(id, false))
			return nil, cli.ExitInterrupted
		case err != nil:
			return nil, cli.Errorf("Error reading evaluation: %v", err)
		}
		e, index = read, answer.Index
	}
	fmt.Fprintf(c.Out, "Evaluation %s is %s\n", cli.ShortID(id, false), cli.Joined(e.Status, e.StatusDescription))
	if e.BlockedEval == "" && e.Status != string(cluster.EvalBlocked) {
		return e, nil
	}
	fmt.Fprintf(c.Out, "Some allocations cannot be placed. Evaluation %s is blocked until they can.\n", cli.ShortID(e.BlockedEval, false))
	Shortages(c.Out, e)
	return e, ExitNotPlaced
}
