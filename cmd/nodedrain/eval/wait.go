package eval

import (
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

// Evaluated waits until the scheduler has answered an evaluation, and prints the result. done is what the
// command has changed already, as a sentence without its full stop. The error is [exitNotPlaced] if the
// scheduler answered and some allocations cannot be placed. After any other error the evaluation is nil.
func Evaluated(c *cli.Call, id, done string) (e *wire.Evaluation, err error) {
	servers := cli.Contact{Patience: EvaluatedPatience}
	servers.Answered() // the change was made
	for index := uint64(0); e == nil || e.Status == string(cluster.EvalPending); {
		read, answer, err := cli.Retry(c.Ctx, &servers, func() (*wire.Evaluation, client.Answer, error) {
			return c.API.Evaluation(c.Ctx, id, client.Query{Index: index, Wait: evalWait})
		})
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
