package client_test

import (
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

const (
	silentDriver    = "The driver did not answer 3 calls about the task, and the client restarts the driver"
	silentUnhealthy = "The driver has not answered for 5m0s whether the task runs"
)

// The driver of a running task stops answering, and its next process answers. The task has one copy, keeps its
// verdict, and its exit code is reported. Bug: the client never restarted the driver, and the task ran for ever.
func TestSilent_restartHelps(t *testing.T) {
	for _, call := range []string{"every", "InspectTask"} {
		n, web := running(t, script{hangsAt: call, hangsOnce: true}, false)
		n.run(client.InspectInterval - time.Minute)
		must.StrNotContains(t, n.messages("a", "web"), silentDriver)
		n.run(5 * time.Minute)
		must.StrContains(t, n.messages("a", "web"), silentDriver)
		must.EqOp(t, 1, strings.Count(n.storyOf(), "the driver dies"))
		n.run(time.Hour)
		must.EqOp(t, 1, strings.Count(n.storyOf(), "the driver dies"))
		must.True(t, *n.servers["a"].Healthy)
		must.StrNotContains(t, n.messages("a", "web"), silentUnhealthy)
		must.Eq(t, []*task{web}, n.live("web"))
		n.exit(web, 3, 0)
		n.run(time.Second)
		must.StrContains(t, n.messages("a", "web"), "Exit Code: 3")
	}
}

// A driver that answers after one or two calls without an answer is not restarted.
func TestSilent_answersAgain(t *testing.T) {
	n, _ := running(t, script{hangsAt: "InspectTask"}, false)
	n.run(client.InspectInterval + 2*time.Minute)
	n.scripts["web"] = script{}
	n.run(client.InspectInterval)
	n.scripts["web"] = script{hangsAt: "InspectTask"}
	n.run(3 * time.Minute)
	must.StrNotContains(t, n.storyOf(), "the driver dies")
	must.StrNotContains(t, n.messages("a", "web"), silentDriver)
}

// All processes of the driver hang. The allocation becomes unhealthy, the driver is not restarted all the time, and a
// stop ends by the hold limit: the client kills the control group of the task. When the driver answers, the allocation is healthy again.
// Bug: the allocation stayed healthy for ever.
func TestSilent_allProcesses(t *testing.T) {
	for _, call := range []string{"every", "InspectTask"} {
		for _, killed := range []bool{false, true} {
			n, web := running(t, script{hangsAt: call}, false)
			n.run(10 * time.Minute)
			must.True(t, *n.servers["a"].Healthy)
			if killed {
				restarts(n, 10*time.Minute) // the next client counts its own time
			} else {
				n.run(5 * time.Minute)
			}
			must.False(t, *n.servers["a"].Healthy, must.Sprint(call, n.storyOf()))
			must.StrContains(t, n.messages("a", "web"), silentUnhealthy)
			must.EqOp(t, cluster.ClientRunning, n.status("a"))
			if call == "InspectTask" {
				before := strings.Count(n.storyOf(), "the driver dies")
				n.run(time.Hour)
				must.Between(t, 2, strings.Count(n.storyOf(), "the driver dies")-before, 5)
				sc := n.scripts["web"]
				n.scripts["web"] = script{}
				n.run(10 * time.Minute)
				must.True(t, *n.servers["a"].Healthy)
				n.scripts["web"] = sc
				n.run(time.Hour)
				must.False(t, *n.servers["a"].Healthy)
			}
			must.Eq(t, []*task{web}, n.live("web"))
			ends(n, "a", client.DefaultHoldLimit)
			must.Len(t, 0, n.live(""))
		}
	}
}

// The driver keeps the task in a group of its own, so only the driver can end it. A stop ends when the next process
// of the driver answers.
func TestSilent_onlyTheDriverCanKill(t *testing.T) {
	n, web := running(t, script{hangsAt: "every", hangsOnce: true}, true)
	n.run(2 * time.Minute)
	must.True(t, web.alive)
	ends(n, "a", 5*time.Minute)
	must.Len(t, 0, n.live(""))
}
