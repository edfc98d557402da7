package client

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// visiting states which allocations the core visits.
type visiting struct {
	core *Core
	// marked: a visit of the last pass has marked an allocation, so another pass follows.
	marked bool
	// count counts the visits of allocations.
	count int
	// serving are the allocations with a storage plugin.
	serving []*allocRunner
}

// all makes the core visit all allocations, after a change that may concern each of them.
func (v *visiting) all() {
	for _, a := range v.core.allocs {
		a.visits.mark()
	}
}

// plugins makes the core visit the storage plugins, which may be held for volumes of others.
func (v *visiting) plugins() {
	for _, a := range v.serving {
		a.visits.mark()
	}
}

// ended makes the core visit the allocations that have waited for the end of another one.
func (v *visiting) ended() {
	for _, a := range v.core.allocs {
		if a.rec.ClientStatus == cluster.ClientPending && a.rec.Alloc.PreviousAllocation != "" && a.order.predecessor() == nil {
			a.visits.mark()
		}
	}
}

// pass visits the volumes and allocations that have something to do.
func (v *visiting) pass() {
	v.stepVolumes()
	v.marked = false
	for _, a := range v.core.allocs {
		a.visits.visit()
	}
}

// stepVolumes steps the machine of the node's volumes. It makes the core visit the allocations
// whose volumes have changed, and the storage plugins.
func (v *visiting) stepVolumes() {
	c := v.core
	if c.volumes == nil {
		return
	}
	c.wakeAt = min(c.wakeAt, c.volumes.Step(c.now.Boot))
	moved := c.volumes.Moved()
	for _, id := range moved {
		if a := c.alloc(id); a != nil {
			a.visits.mark()
		}
	}
	if len(moved) > 0 {
		v.plugins()
	}
}

// added follows a new allocation.
func (v *visiting) added(a *allocRunner) {
	if a.mounts.serves() {
		v.serving = append(v.serving, a)
	}
}

// removed follows the end of the record of an allocation.
func (v *visiting) removed(a *allocRunner) {
	v.serving = slices.DeleteFunc(v.serving, func(other *allocRunner) bool { return other == a })
}

// visits describes when the next step of an allocation can have an effect.
type visits struct {
	alloc *allocRunner
	// marked: something that the allocation depends on has changed since its last visit began.
	marked bool
	// restless: the allocation waits for devices, ports or cores, which any other allocation may hold. Each step
	// visits it.
	restless bool
	// at is the earliest time that the last visit requested.
	at time.Duration
}

// mark makes the core visit the allocation.
func (v *visits) mark() { v.marked, v.alloc.core.visiting.marked = true, true }

// visit steps the allocation if this can have an effect.
func (v *visits) visit() {
	c := v.alloc.core
	if !v.marked && !v.restless && !c.reached(v.at) {
		return
	}
	others := c.wakeAt
	c.wakeAt, v.marked = Never, false
	c.visiting.count++
	v.alloc.step()
	v.at, c.wakeAt = c.wakeAt, min(c.wakeAt, others)
	v.restless = slices.ContainsFunc([]cluster.WaitKind{cluster.WaitDevice, cluster.WaitPort, cluster.WaitCore}, v.alloc.waitsFor)
}
