package volumes

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Bounds on the calls of controllers.
const (
	// MaxCalls bounds the calls in flight, MaxCallsOfPlugin those of one storage plugin: a plugin that
	// hangs delays no other one. A volume has one call in flight.
	MaxCalls         = 32
	MaxCallsOfPlugin = 8
	// CallTimeout bounds one call. A call that takes longer is repeated, at another controller if there is
	// one.
	CallTimeout = time.Minute
	// A call that failed is repeated after MinCallBackoff, which doubles up to MaxCallBackoff.
	MinCallBackoff = time.Second
	MaxCallBackoff = 30 * time.Second
)

// Caller decides which of the due calls begin during one term, and when those that failed are repeated. The
// next leader has another one. It belongs to one goroutine, and does not block.
type Caller struct {
	// flying are the volumes with a call in flight, and their plugins.
	flying map[cluster.VolumeKey]cluster.PluginID
	// failed are the due calls that have failed.
	failed map[callKey]failedCall
}

// callKey names a call for as long as it is due.
type callKey struct {
	volume cluster.VolumeKey
	node   cluster.NodeID
	detach bool
}

func keyOfCall(c *Call) callKey { return callKey{c.Volume.Key(), c.Node, c.Detach} }

// failedCall says how often a call has failed, and when it is repeated.
type failedCall struct {
	failures int
	at       time.Time
}

// NewCaller returns a caller without calls.
func NewCaller() *Caller {
	return &Caller{flying: make(map[cluster.VolumeKey]cluster.PluginID), failed: make(map[callKey]failedCall)}
}

// Flying is how many calls are in flight.
func (c *Caller) Flying() int { return len(c.flying) }

// Forget forgets the failures of calls that are due no more.
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

// Ready reports whether a due call may begin at the time. A call without a controller may not.
func (c *Caller) Ready(call *Call, now time.Time) bool {
	if _, flies := c.flying[call.Volume.Key()]; flies || len(call.Controllers) == 0 || len(c.flying) >= MaxCalls || now.Before(c.Again(call)) {
		return false
	}
	ofPlugin := 0
	for _, id := range c.flying {
		if id == call.Volume.Plugin {
			ofPlugin++
		}
	}
	return ofPlugin < MaxCallsOfPlugin
}

// Again is when a call that has failed is repeated at the earliest, or the zero time.
func (c *Caller) Again(call *Call) time.Time { return c.failed[keyOfCall(call)].at }

// Begin notes that a ready call begins, and returns the node of the controller to call.
func (c *Caller) Begin(call *Call) cluster.NodeID {
	c.flying[call.Volume.Key()] = call.Volume.Plugin
	return call.Controller(c.failed[keyOfCall(call)].failures)
}

// Succeeded notes that a call is over.
func (c *Caller) Succeeded(call *Call) {
	delete(c.flying, call.Volume.Key())
	delete(c.failed, keyOfCall(call))
}

// Failed notes that a call is over and not done. It returns how often it has failed, and the wait before it
// is repeated.
func (c *Caller) Failed(call *Call, now time.Time) (failures int, wait time.Duration) {
	k := keyOfCall(call)
	delete(c.flying, k.volume)
	failed := c.failed[k]
	wait = MaxCallBackoff
	if failed.failures < 5 {
		wait = min(MaxCallBackoff, MinCallBackoff<<failed.failures)
	}
	failed.failures, failed.at = failed.failures+1, now.Add(wait)
	c.failed[k] = failed
	return failed.failures, wait
}
