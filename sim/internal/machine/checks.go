package machine

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/checks"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// checkTime is how long a check takes.
const checkTime = 3 * time.Millisecond

// TargetState is what the target of a check does.
type TargetState uint8

// The values of [TargetState].
const (
	TargetPasses TargetState = iota
	TargetFails
	// TargetHangs answers no check.
	TargetHangs
)

// Target is the target of a check. Clients do not change it.
type Target struct {
	State TargetState
	// Since is when its state last changed, or zero.
	Since time.Time
}

// targets are the targets of a node whose state has changed, by allocation and check.
type targets map[[2]string]Target

// SetTarget changes the target of a check.
func SetTarget(n *Node, alloc cluster.AllocID, check string, state TargetState) {
	if TargetOf(n, alloc, check).State == state {
		return
	}
	n.targets[[2]string{string(alloc), check}] = Target{State: state, Since: n.clock.now}
}

// TargetOf returns the target of a check.
func TargetOf(n *Node, alloc cluster.AllocID, check string) Target {
	return n.targets[[2]string{string(alloc), check}]
}

// probes are the runs of checks of one client.
type probes struct {
	run *run
	// hanging are the ends of runs whose target hangs.
	hanging map[probed]func()
}

// probed identifies a run.
type probed struct {
	alloc  cluster.AllocID
	number uint64
}

// Check answers by the state of the target. One that hangs fails at the timeout.
func (p *probes) Check(run client.CheckRun, reply func(checks.Result)) {
	name := run.Definition.Check.Name
	if !p.run.begins("Check", string(run.Alloc.ID)+" "+name) {
		return
	}
	id := probed{run.Alloc.ID, run.Number}
	answer := func(r checks.Result) {
		p.run.answers("Check", func() {
			p.run.node.options.Observer.Checked(p.run.node, run.Alloc.ID, name, r.Outcome == checks.Passed)
			reply(r)
		})
	}
	if TargetOf(p.run.node, run.Alloc.ID, name).State == TargetHangs {
		var cancel func()
		end := func() {
			delete(p.hanging, id)
			cancel()
			answer(checks.Result{Output: "no answer"})
		}
		cancel = p.run.after(run.Definition.Check.Timeout, end)
		p.hanging[id] = end
		return
	}
	p.run.after(checkTime, func() {
		r := checks.Result{Outcome: checks.Passed}
		if TargetOf(p.run.node, run.Alloc.ID, name).State != TargetPasses {
			r = checks.Result{Output: "the target fails"}
		}
		answer(r)
	})
}

// EndCheck ends a run whose target hangs. Others end soon.
func (p *probes) EndCheck(alloc cluster.AllocID, number uint64) {
	if end := p.hanging[probed{alloc, number}]; end != nil {
		p.run.after(0, end)
	}
}
