package onnode_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/onnode"
)

// limited is a node that runs an allocation, whose group permits it ten minutes.
type limited struct {
	node  *machine.Node
	judge *onnode.Judge
	alloc *cluster.Allocation
	// answer is what the client has received.
	answer client.Changes
}

// newLimited returns a limited node. With ignorant set, the judge receives the limit and the client does not.
func newLimited(t *testing.T, ignorant bool) *limited {
	t.Helper()
	l := startLimited(t, ignorant, 0)
	l.advance(t, time.Minute)
	return l
}

// startLimited returns a limited node that has just received the allocation. Its driver takes a time to start a task.
func startLimited(t *testing.T, ignorant bool, takes time.Duration) *limited {
	t.Helper()
	l := &limited{alloc: allocation("a1")}
	l.node, l.judge = newNode(machine.Options{Script: func(*driver.TaskConfig) scripted.Script {
		return scripted.Script{IgnoreSignals: true, StartDelay: takes}
	}})
	must.NoError(t, l.node.StartClient())
	longest := l.alloc.Copy()
	longest.Job = longest.Job.Copy()
	longest.Job.TaskGroups[0].MaxRunDuration = 10 * time.Minute
	if ignorant {
		l.answer = wanted(l.alloc)
	} else {
		l.answer = wanted(longest)
	}
	l.node.Servers(l.answer)
	l.judge.Received(l.node, wanted(longest))
	return l
}

func (l *limited) advance(t *testing.T, d time.Duration) {
	t.Helper()
	_, err := l.node.Advance(l.node.Now().Add(d))
	must.NoError(t, err)
	l.judge.Advanced(l.node)
	l.judge.Still(l.node.Now(), l.node)
}

func (l *limited) signal(s scripted.Signal, by scripted.Sender) {
	l.node.Machine().Signal(l.node.Machine().LivingIn("a1:web")[0].Identity, s, by)
	l.judge.Advanced(l.node)
}

// found returns the checks that have found something.
func (l *limited) found() (all []string) {
	for _, v := range l.judge.Violations() {
		all = append(all, v.Guarantee+" "+v.Check)
	}
	return all
}

// The client stops the allocation in time, also if it was restarted, and nothing is found.
func TestJudge_longestRun(t *testing.T) {
	t.Parallel()
	l := newLimited(t, false)
	l.node.KillClient()
	l.advance(t, time.Minute)
	must.NoError(t, l.node.StartClient())
	l.advance(t, 7*time.Minute)
	must.Len(t, 1, l.node.Machine().LivingIn("a1:web"))
	l.advance(t, 20*time.Minute)
	must.Len(t, 0, l.node.Machine().LivingIn("a1:web"))
	must.SliceEmpty(t, l.found())
}

// The client freezes or dies before its driver has started the task, and does not get the answer. Bug: the judge counted
// from that start. A frozen client gets the answer later, and a later client starts the task again.
func TestJudge_longestRunWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		begin func(*machine.Node)
		end   func(*machine.Node) error
	}{
		"a frozen client": {machine.Freeze, func(n *machine.Node) error { machine.Thaw(n); return nil }},
		"a dead client":   {(*machine.Node).KillClient, (*machine.Node).StartClient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := startLimited(t, false, 20*time.Second)
			l.advance(t, 10*time.Second)
			fault.begin(l.node)
			l.advance(t, time.Minute)
			must.NoError(t, fault.end(l.node))
			l.node.Servers(l.answer)
			for range 12 * 6 {
				l.advance(t, 10*time.Second)
			}
			must.Len(t, 0, l.node.Machine().LivingIn("a1:web"))
			must.SliceEmpty(t, l.found())
		})
	}
}

// The time counts again after a reboot.
func TestJudge_longestRunAfterAReboot(t *testing.T) {
	t.Parallel()
	l := newLimited(t, false)
	l.advance(t, 8*time.Minute)
	l.node.Halt()
	l.node.Boot()
	must.NoError(t, l.node.StartClient())
	l.node.Servers(l.answer)
	l.advance(t, 9*time.Minute)
	must.Len(t, 1, l.node.Machine().LivingIn("a1:web"))
	l.advance(t, 10*time.Minute)
	must.SliceEmpty(t, l.found())
}

func TestJudge_runsTooLong(t *testing.T) {
	t.Parallel()
	l := newLimited(t, true)
	l.advance(t, 9*time.Minute)
	must.SliceEmpty(t, l.found())
	l.advance(t, time.Minute)
	must.Eq(t, []string{"N2 runs too long"}, l.found())
}

// After the restart of a client the stop may take longer, and not for ever.
func TestJudge_runsTooLongAfterARestart(t *testing.T) {
	t.Parallel()
	l := newLimited(t, true)
	l.advance(t, 9*time.Minute)
	l.node.KillClient()
	must.NoError(t, l.node.StartClient())
	l.advance(t, 2*time.Minute)
	must.SliceEmpty(t, l.found())
	l.advance(t, 5*time.Minute)
	must.Eq(t, []string{"N2 runs too long"}, l.found())
}

func TestJudge_stopsBeforeItsLongestRun(t *testing.T) {
	t.Parallel()
	l := newLimited(t, true)
	l.advance(t, 8*time.Minute)
	l.signal(scripted.SIGTERM, scripted.ByDriver)
	l.advance(t, time.Second)
	must.Eq(t, []string{"N2 stops without cause"}, l.found())
}

func TestJudge_completeAfterItsLongestRun(t *testing.T) {
	t.Parallel()
	for status, found := range map[cluster.ClientStatus][]string{cluster.ClientFailed: nil, cluster.ClientComplete: {"N3 not the truth"}} {
		l := newLimited(t, true)
		l.advance(t, 9*time.Minute+time.Second)
		l.signal(scripted.SIGTERM, scripted.ByDriver)
		l.signal(scripted.SIGKILL, scripted.ByFault)
		must.NoError(t, l.node.Machine().RemoveCgroup("a1:web"))
		l.judge.Reported(l.node, []cluster.AllocReport{{Alloc: "a1", ClientStatus: status}})
		must.Eq(t, found, l.found())
	}
}
