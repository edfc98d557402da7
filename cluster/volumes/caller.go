package volumes

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Limits of the calls of controllers.
const (
	// MaxCalls is the largest number of calls in flight. MaxCallsOfPlugin is the largest number for
	// one storage plugin, so that a plugin that hangs does not delay other plugins. A volume has at
	// most one call in flight.
	MaxCalls         = 32
	MaxCallsOfPlugin = 8
	// CallTimeout is the timeout of one call. A call that takes longer is retried, at another
	// controller if there is one.
	CallTimeout = time.Minute
	// A failed call is retried after MinCallBackoff, which doubles up to MaxCallBackoff.
	MinCallBackoff = time.Second
	MaxCallBackoff = 30 * time.Second
)

// Caller decides which due calls start during one term, and when failed calls are retried. The next
// leader has a new Caller. It belongs to one goroutine, and does not block.
type Caller struct {
	// flying are the calls in flight, by their volumes.
	flying map[cluster.VolumeKey]*Call
	// failed are the due calls that have failed.
	failed map[callKey]FailedCall
}

// callKey identifies a call while it is due.
type callKey struct {
	volume cluster.VolumeKey
	node   cluster.NodeID
	detach bool
}

func keyOfCall(c *Call) callKey { return callKey{c.Volume.Key(), c.Node, c.Detach} }

// NewCaller returns a caller without calls.
func NewCaller() *Caller {
	return &Caller{flying: make(map[cluster.VolumeKey]*Call), failed: make(map[callKey]FailedCall)}
}

// Flying is how many calls are in flight.
func (c *Caller) Flying() int { return len(c.flying) }

// Forget removes the failures of calls that are not due any more.
func (c *Caller) Forget(due []*Call) {
	is := make(map[callKey]bool, len(due))
	for _, call := range due {
		is[keyOfCall(call)] = true
	}
	for k := range c.failed {
		if !is[k] {
			delete(c.failed, k)
		}
	}
}

// Ready reports whether a due call may start at the time. A call without a controller may not.
func (c *Caller) Ready(call *Call, now time.Time) bool {
	if _, flies := c.flying[call.Volume.Key()]; flies || len(call.Controllers) == 0 || len(c.flying) >= MaxCalls || now.Before(c.Again(call)) {
		return false
	}
	ofPlugin := 0
	for _, o := range c.flying {
		if o.Volume.Plugin == call.Volume.Plugin {
			ofPlugin++
		}
	}
	return ofPlugin < MaxCallsOfPlugin
}

// Again is the earliest time at which a failed call is retried, or the zero time.
func (c *Caller) Again(call *Call) time.Time { return c.failed[keyOfCall(call)].NextAt }

// Begin records that a ready call starts, and returns the node of the controller to call.
func (c *Caller) Begin(call *Call) cluster.NodeID {
	c.flying[call.Volume.Key()] = call
	return call.Controller(c.failed[keyOfCall(call)].Failures)
}

// Succeeded records that a call has succeeded.
func (c *Caller) Succeeded(call *Call) {
	delete(c.flying, call.Volume.Key())
	delete(c.failed, keyOfCall(call))
}

// Failed notes that a call is over and not done, for the error. It returns what is known of the call now.
func (c *Caller) Failed(call *Call, now time.Time, err error) FailedCall {
	k := keyOfCall(call)
	delete(c.flying, k.volume)
	failures := c.failed[k].Failures
	wait := MaxCallBackoff
	if failures < 5 {
		wait = min(MaxCallBackoff, MinCallBackoff<<failures)
	}
	failed := FailedCall{
		Volume: k.volume, Plugin: call.Volume.Plugin, Node: k.node, Detach: k.detach, Failures: failures + 1,
		Controller: call.Controller(failures), LastError: cluster.CutText(err.Error()), LastAt: now, NextAt: now.Add(wait),
	}
	c.failed[k] = failed
	return failed
}
