package volumes

import (
	"errors"
	"slices"
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

// ErrNoAnswer is the error of a call that its controller has not answered within [CallTimeout], or before
// the connection to it has ended. The controller may still execute the call, at any later time.
var ErrNoAnswer = errors.New("the controller has not answered, and may still execute the call")

// Caller decides which due calls start during one term, and when failed calls are retried. The next
// leader has a new Caller. It belongs to one goroutine, and does not block.
type Caller struct {
	// flying are the calls in flight, by their volumes.
	flying map[cluster.VolumeKey]*Call
	// failed are the due calls that have failed.
	failed map[callKey]FailedCall
	// silent are the controllers that may still execute a call which they have not answered, in the order of
	// their calls. There is at most one row for each volume, node and direction.
	silent map[callKey][]cluster.NodeID
}

// Attempt is one attempt of a call.
type Attempt struct {
	*Call
	// Controller is the node of the controller to call.
	Controller cluster.NodeID
	// Completes means that the call is done if the attempt succeeds. Otherwise other controllers must execute
	// the call too, and the caller changes no claims after this attempt.
	Completes bool
}

// callKey identifies a call while it is due.
type callKey struct {
	volume cluster.VolumeKey
	node   cluster.NodeID
	detach bool
}

// opposite identifies the call that undoes the call.
func (k callKey) opposite() callKey { return callKey{k.volume, k.node, !k.detach} }

func keyOfCall(c *Call) callKey { return callKey{c.Volume.Key(), c.Node, c.Detach} }

// NewCaller returns a caller without calls.
func NewCaller() *Caller {
	return &Caller{flying: make(map[cluster.VolumeKey]*Call), failed: make(map[callKey]FailedCall), silent: make(map[callKey][]cluster.NodeID)}
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
	//lint:order a count
	for _, o := range c.flying {
		if o.Volume.Plugin == call.Volume.Plugin {
			ofPlugin++
		}
	}
	return ofPlugin < MaxCallsOfPlugin
}

// Again is the earliest time at which a failed call is retried, or the zero time.
func (c *Caller) Again(call *Call) time.Time { return c.failed[keyOfCall(call)].NextAt }

// Begin records that a ready call starts, and returns the attempt to make.
//
// A controller that has not answered the opposite call may execute it after this one: the volume would be
// detached while it is in use, or stay attached without a claim. A controller executes one call of a volume
// at a time. So all such controllers must execute this call, unless they cannot be called any more.
func (c *Caller) Begin(call *Call) Attempt {
	k := keyOfCall(call)
	c.flying[k.volume] = call
	failures := c.failed[k].Failures
	silent := slices.DeleteFunc(slices.Clone(c.silent[k.opposite()]), func(id cluster.NodeID) bool { return !slices.Contains(call.Controllers, id) })
	if len(silent) == 0 {
		return Attempt{Call: call, Controller: call.Controller(failures), Completes: true}
	}
	return Attempt{Call: call, Controller: silent[failures%len(silent)], Completes: len(silent) == 1}
}

// Succeeded records that an attempt has succeeded.
func (c *Caller) Succeeded(a Attempt) {
	k := keyOfCall(a.Call)
	delete(c.flying, k.volume)
	delete(c.failed, k)
	for _, answered := range []callKey{k, k.opposite()} {
		c.silent[answered] = slices.DeleteFunc(c.silent[answered], func(id cluster.NodeID) bool { return id == a.Controller })
		if len(c.silent[answered]) == 0 {
			delete(c.silent, answered)
		}
	}
}

// Failed notes that an attempt is over and not done, for the error: [ErrNoAnswer] if the controller has not
// answered. It returns the state of the call.
func (c *Caller) Failed(a Attempt, now time.Time, err error) FailedCall {
	k := keyOfCall(a.Call)
	delete(c.flying, k.volume)
	if errors.Is(err, ErrNoAnswer) && !slices.Contains(c.silent[k], a.Controller) {
		c.silent[k] = append(c.silent[k], a.Controller)
	}
	failures := c.failed[k].Failures
	wait := MaxCallBackoff
	if failures < 5 {
		wait = min(MaxCallBackoff, MinCallBackoff<<failures)
	}
	failed := FailedCall{
		Volume: k.volume, Plugin: a.Volume.Plugin, Node: k.node, Detach: k.detach, Failures: failures + 1,
		Controller: a.Controller, LastError: cluster.CutText(err.Error()), LastAt: now, NextAt: now.Add(wait),
	}
	c.failed[k] = failed
	return failed
}
