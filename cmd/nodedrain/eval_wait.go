package main

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// exitNotPlaced is the exit code of a job whose allocations cannot be placed, as of Nomad's
// command.
const exitNotPlaced exitCode = 2

// evalWait bounds a blocking read of the evaluation.
const evalWait = 2 * time.Second

// evaluatedPatience is how long the command continues without an answer from any server. It is
// longer than an election.
const evaluatedPatience = 30 * time.Second

// evaluated waits until the scheduler has answered an evaluation, and tells what it did. done is what the
// command has changed already, as a sentence without its full stop. The error is [exitNotPlaced] if the
// scheduler answered and some allocations cannot be placed. After any other error the evaluation is nil.
func evaluated(c *operatorCommand, asked *client.Client, id, done string) (e *wire.Evaluation, err error) {
	servers := contact{patience: evaluatedPatience}
	servers.answered() // the change was made
	for index := uint64(0); e == nil || e.Status == string(cluster.EvalPending); {
		read, answer, err := again(c.ctx, &servers, func() (*wire.Evaluation, client.Answer, error) {
			return asked.Evaluation(c.ctx, id, client.Query{Index: index, Wait: evalWait})
		})
		switch {
		case c.ctx.Err() != nil:
			fmt.Fprintf(c.out, "%s, and the scheduler continues: nodedrain eval status %s\n", done, shortID(id, false))
			return nil, exitInterrupted
		case err != nil:
			return nil, saidf("Error reading evaluation: %v", err)
		}
		e, index = read, answer.Index
	}
	fmt.Fprintf(c.out, "Evaluation %s is %s\n", shortID(id, false), joined(e.Status, e.StatusDescription))
	if e.BlockedEval == "" && e.Status != string(cluster.EvalBlocked) {
		return e, nil
	}
	fmt.Fprintf(c.out, "Some allocations cannot be placed. Evaluation %s is blocked until they can.\n", shortID(e.BlockedEval, false))
	shortages(c.out, e)
	return e, exitNotPlaced
}
