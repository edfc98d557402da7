package onnode_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// A check restarts a task whose driver hangs. The client dies, and the record that states the restart is lost. The driver
// then sends the signal. Small seed 274609393106118: the judge knew no cause of this signal.
func TestJudge_restartsAfterTheLossOfItsRecord(t *testing.T) {
	t.Parallel()
	node, judge := newNode(machine.Options{})
	advance := func(d time.Duration) {
		t.Helper()
		_, err := node.Advance(node.Now().Add(d))
		must.NoError(t, err)
	}
	must.NoError(t, node.StartClient())
	a := checked("a1")
	node.Servers(wanted(a))
	advance(90 * time.Second)
	task := node.Machine().LivingIn("a1:web")[0].Identity
	machine.SetTarget(node, "a1", "up", machine.TargetFails)
	advance(80 * time.Second) // the check has failed once
	node.HangDriver("mock", 14*time.Second)
	advance(12 * time.Second)
	must.True(t, node.Record("a1").Tasks[0].Restarting)
	node.KillClient()
	node.LoseRecord("a1")
	advance(1990 * time.Millisecond)
	must.NoError(t, node.StartClient())
	advance(time.Minute)
	p, _ := node.Machine().Process(task)
	must.SliceNotEmpty(t, p.Signals)
	must.EqOp(t, scripted.ByDriver, p.Signals[0].By)
	must.SliceEmpty(t, judge.Violations())
}
