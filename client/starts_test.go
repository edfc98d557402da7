package client_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// slowJob places allocations of the job "slow". Its tasks start after two hours.
func slowJob(n *node, count int) (ids []cluster.AllocID) {
	n.scripts["slow"] = script{startTakes: 2 * time.Hour}
	for i := range count {
		a := allocation(cluster.AllocID(fmt.Sprintf("slow-%03d", i)), mainTask("slow"))
		a.JobID = "slow"
		n.place(a)
		ids = append(ids, a.ID)
	}
	return ids
}

// Bug: the requests to start a task formed one line for each driver. A job of a thousand allocations
// whose tasks started slowly delayed all other jobs of the node, and the requests at the end of the
// line timed out, so the client killed the driver.
func TestStarts_oneJobDoesNotDelayOthers(t *testing.T) {
	n := newNode(t)
	ids := slowJob(n, 200)
	n.run(10 * time.Second)
	must.Eq(t, client.DefaultMaxStarts/4, n.calls["StartTask"])
	must.Eq(t, "the driver mock starts other tasks first", n.servers[ids[199]].TaskStates.State("slow").Waiting.Detail)

	n.place(allocation("a", mainTask("web")))
	reaches(n, "a", cluster.ClientRunning, 10*time.Second)

	// The rest of the line stops at once, and the driver is not killed for its requests.
	for _, id := range ids[client.DefaultMaxStarts/4:] {
		n.stop(id)
	}
	n.run(10 * time.Second)
	must.EqOp(t, cluster.ClientComplete, n.status(ids[199]))
	must.EqOp(t, 1, n.driver.generation)
}

// Bug: the quarter of fewer than four requests was none, so no task ever started on a node with such a limit.
func TestStarts_fewAtATime(t *testing.T) {
	for most := 1; most <= 5; most++ {
		n := newNode(t)
		n.maxStarts = most
		n.crash()
		ids := slowJob(n, 6)
		n.scripts["slow"] = script{startTakes: time.Second}
		n.run(time.Minute)
		for _, id := range ids {
			must.EqOp(t, cluster.ClientRunning, n.status(id), must.Sprint(most))
		}
	}
}

// Each start has its own deadline, which begins when the request is sent.
func TestStarts_deadlineAfterTheTurn(t *testing.T) {
	n := newNode(t)
	ids := slowJob(n, 200)
	n.scripts["slow"] = script{startTakes: client.DefaultStartTimeout - time.Second}
	n.run(time.Hour)
	for _, id := range ids {
		must.EqOp(t, cluster.ClientRunning, n.status(id))
	}
	must.EqOp(t, 1, n.driver.generation)
}

// A client that dies while starts wait begins them again.
func TestStarts_afterADeath(t *testing.T) {
	n := newNode(t)
	ids := slowJob(n, 100)
	n.scripts["slow"] = script{startTakes: 30 * time.Second}
	n.run(10 * time.Second)
	dies(n)
	n.run(time.Hour)
	for _, id := range ids {
		must.EqOp(t, cluster.ClientRunning, n.status(id), must.Sprint(id))
		must.Len(t, 1, n.liveOf(id, "slow"))
	}
}
