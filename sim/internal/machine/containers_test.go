package machine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The driver answers WaitTask as soon as a task is being stopped. The client used to report the
// allocation as complete while the task ran for three more seconds, with exit code 0.
func TestNode_waitAnswersEarly(t *testing.T) {
	t.Parallel()
	f := newFixtureOf(t, nil, true)
	f.place(three(f))
	f.run(30 * time.Second)
	f.stop("a1")
	f.run(3 * time.Second)
	must.Len(t, 2, tasks(f)) // the shutdown delay and three seconds are not over
	must.EqOp(t, cluster.ClientRunning, f.row("a1").ClientStatus)
	f.settle()
	must.EqOp(t, cluster.ClientComplete, f.row("a1").ClientStatus)
	must.SliceEmpty(t, tasks(f))
	for name, end := range map[string]string{"web": "Exit Code: 143, Signal: 15", "proxy": "Exit Code: 137, Signal: 9"} {
		must.EqOp(t, end, terminated(f, "a1", name))
	}
}

// terminated returns the text of the last end of a task in the record.
func terminated(f *fixture, id cluster.AllocID, task string) (text string) {
	for _, t := range f.node.Record(id).Tasks {
		for _, e := range t.State.Events {
			if t.State.Name == task && e.Type == "Terminated" {
				text = e.Message
			}
		}
	}
	return text
}

// Random nodes whose driver keeps tasks in containers.
func TestNode_containersRandom(t *testing.T) {
	t.Parallel()
	seeds := uint64(300)
	if testing.Short() {
		seeds = 60
	}
	for seed := range seeds {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { playRandom(t, rand.New(rand.NewPCG(seed, 19)), seed, true) }) {
			return
		}
	}
}
