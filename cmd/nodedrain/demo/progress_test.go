package demo

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/clitest"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// script shows the drains of two nodes and the kill of a leader, with many calls a second.
func script(l *lines) {
	l.event(0, "time scale 60: a simulated minute takes 1s")
	a := DrainLook{Node: "node-a", Total: 8}
	b := DrainLook{Node: "node-b", Total: 3}
	for i := range 50 {
		at := time.Duration(i) * 100 * time.Millisecond
		look := Look{At: at, Leader: "server-1"}
		a.Left, a.Reason = 8-min(i, 16)/4, rules.ReasonWaitingForRoom
		a.Cause = "alloc 3f2a9b01 on node-c has no health verdict yet"
		a.Waiting = [rules.ReasonCount]int{rules.ReasonWaitingForRoom: a.Left - 1, rules.ReasonStopping: 1}
		b.Left, b.Reason = 3, rules.ReasonBatchRunning
		b.Waiting = [rules.ReasonCount]int{rules.ReasonBatchRunning: 3}
		switch {
		case i > 45:
			a = DrainLook{Node: "node-a", Total: 8, Outcome: cluster.OutcomeComplete, Took: 4200 * time.Millisecond}
			fallthrough
		case i > 32:
			b = DrainLook{Node: "node-b", Total: 3, Outcome: cluster.OutcomeDeadlineReached, Took: 3100 * time.Millisecond}
		case i > 25:
			a.Reason, b.Reason, a.Cause = rules.ReasonStopping, rules.ReasonStopping, ""
			b.Waiting = [rules.ReasonCount]int{rules.ReasonStopping: 3}
		case i > 15:
			look.Leader = ""
		}
		look.Drains = []DrainLook{a, b}
		if i == 16 {
			l.event(at, "killed the leader, server-1")
		}
		l.show(look)
		if i == 26 {
			l.event(at, "server-2 leads")
		}
	}
}

// Plain lines show the changes, at most once a second.
func TestLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	script(newLines(&out))
	clitest.Golden(t, "lines.golden", out.String())
}

// While no allocation leaves, the progress says for how long, and what ends the wait.
func TestLook_still(t *testing.T) {
	t.Parallel()
	look := Look{Leader: "server-1", Still: time.Second, Drains: []DrainLook{
		{Node: "node-a", Left: 2, Deadline: 9 * time.Second}, {Node: "node-b", Left: 1, Deadline: 7 * time.Second}, {Node: "node-c", Left: 1},
		{Node: "node-d", Outcome: cluster.OutcomeComplete, Deadline: time.Second}, {Node: "node-e", Deadline: -time.Second},
	}}
	must.Eq(t, "", look.still())
	look.Still = 3 * time.Second
	must.Eq(t, "none has left for 3s, next deadline in 7s", look.still())
	look.Leader = ""
	must.Eq(t, "none has left for 3s, the servers elect a leader", look.still())
	look.Leader, look.Drains = "server-2", look.Drains[2:3]
	must.Eq(t, "none has left for 3s", look.still())
}

// For many drains plain lines show the sum alone.
func TestLines_many(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	progress := newLines(&out)
	look := Look{Leader: "server-1"}
	for i := range 21 {
		d := DrainLook{Node: fmt.Sprintf("node-%d", i), Total: 2, Left: 2, Reason: rules.ReasonStopping}
		d.Waiting[rules.ReasonStopping] = 2
		look.Drains = append(look.Drains, d)
	}
	look.Drains[0] = DrainLook{Node: "node-0", Total: 2, Outcome: cluster.OutcomeComplete, Took: time.Second}
	progress.show(look)
	must.Eq(t, "   0.0s  node-0: complete in 1.0s\n"+
		"   0.0s  1 of 21 drains ended, 40 of 42 allocations left: 40 stopping\n", out.String())
}
