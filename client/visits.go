package client

import (
	"slices"
	"time"
)

// visiting says which allocations the core visits. A node has many allocations and volumes, and an
// event concerns few of them.
type visiting struct {
	core *Core
	// count counts the visits of allocations, and begun the effects that were begun.
	count, begun int
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

// moved makes the core visit the allocations whose volumes have changed, and the storage plugins.
func (v *visiting) moved() {
	moved := v.core.volumes.Moved()
	for _, id := range moved {
		if a := v.core.alloc(id); a != nil {
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

// stepVolumes steps the machine of the node's volumes.
func (v *visiting) stepVolumes() {
	if c := v.core; c.volumes != nil {
		c.wakeAt = min(c.wakeAt, c.volumes.Step(c.now.Boot))
		v.moved()
	}
}

// visits says when the next step of an allocation can have an effect.
type visits struct {
	alloc *allocRunner
	// marked: something that the allocation depends on has changed since its last visit.
	marked bool
	// restless: the allocation waits for devices, which any other allocation may hold. Each step
	// visits it.
	restless bool
	// at is the earliest time that the last visit asked for.
	at time.Duration
	// successors wait for the end of the allocation.
	successors []*allocRunner
	// awaits is the allocation in whose successors this one is, or nil.
	awaits *allocRunner
}

// mark makes the core visit the allocation.
func (v *visits) mark() { v.marked = true }

// visit steps the allocation if this can have an effect.
func (v *visits) visit() {
	c := v.alloc.core
	if !v.marked && !v.restless && !c.reached(v.at) {
		return
	}
	others, begun := c.wakeAt, c.visiting.begun
	c.wakeAt, v.marked = Never, false
	c.visiting.count++
	v.alloc.step()
	v.at, c.wakeAt = c.wakeAt, min(c.wakeAt, others)
	v.marked = v.marked || c.visiting.begun != begun // the next visit asks for the deadline of the effect
	v.restless = v.alloc.waitsForDevices()
}

// succeededBy adds an allocation that waits for the end of this one.
func (v *visits) succeededBy(next *allocRunner) {
	if next.visits.awaits != v.alloc {
		next.visits.awaits = v.alloc
		v.successors = append(v.successors, next)
	}
}

// markSuccessors makes the core visit the allocations that waited for the end of this one.
func (v *visits) markSuccessors() {
	for _, next := range v.successors {
		next.visits.awaits = nil
		next.visits.mark()
	}
	v.successors = nil
}
