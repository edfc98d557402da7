package server

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Controllers calls the controllers of storage plugins on their nodes. It is safe for concurrent use.
type Controllers interface {
	// Call makes the controller on the node do what the call says, and returns the publish context of an
	// attachment. After an error it is unknown whether the controller has done it.
	Call(ctx context.Context, controller cluster.NodeID, c *volumes.Call) (publishContext map[string]string, err error)
}

// Bounds on the calls of controllers.
const (
	// maxControllerCalls bounds the calls in flight, maxCallsOfPlugin those of one storage plugin: a
	// plugin that hangs delays no other one. A volume has one call in flight.
	maxControllerCalls = 32
	maxCallsOfPlugin   = 8
	// controllerCallTimeout bounds one call. A call that takes longer is repeated, at another controller
	// if there is one. A session is cut when nothing moves for so long.
	controllerCallTimeout = time.Minute
	// A call that failed is repeated after minCallBackoff, which doubles up to maxCallBackoff.
	minCallBackoff, maxCallBackoff = time.Second, 30 * time.Second
	// callInterval is how often the leader looks for calls that are due.
	callInterval = time.Second
)

// errNoController says that no controller of a plugin can be called.
var errNoController = errors.New("no healthy controller of the storage plugin attaches volumes")

// controllerCalls calls controllers during one term. What is due follows from the state. The next leader
// repeats a call whose answer is lost: calls of controllers are idempotent. It belongs to one goroutine.
type controllerCalls struct {
	leader *leader
	store  *statestore.Store
	logger hclog.Logger
	// flying are the volumes with a call in flight, and their plugins.
	flying map[cluster.VolumeKey]cluster.PluginID
	// failed are the due calls that have failed.
	failed map[callKey]failedCall
	// ended receives the calls that have ended.
	ended chan endedCall
	// seen is the index of the claims in which no call was due, or zero.
	seen uint64
}

// callKey names a call for as long as it is due.
type callKey struct {
	volume cluster.VolumeKey
	node   cluster.NodeID
	detach bool
}

func keyOfCall(c *volumes.Call) callKey { return callKey{c.Volume.Key(), c.Node, c.Detach} }

// failedCall says how often a call has failed, and when it is repeated.
type failedCall struct {
	failures int
	at       time.Time
	// noController says that the lack of a controller is in the log.
	noController bool
}

// endedCall is a call with its result.
type endedCall struct {
	call *volumes.Call
	err  error
}

// callControllers calls the controllers that claims of volumes wait for, until the term ends. It joins the
// calls in flight.
func (l *leader) callControllers(ctx context.Context, store *statestore.Store) {
	c := &controllerCalls{
		leader: l, store: store, logger: l.config.Logger.Named("volumes"),
		flying: make(map[cluster.VolumeKey]cluster.PluginID), failed: make(map[callKey]failedCall),
		ended: make(chan endedCall, maxControllerCalls),
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case e := <-c.ended:
			c.end(ctx, e)
			c.look(ctx)
		case <-timer.C:
			c.look(ctx)
			timer.Reset(callInterval)
		}
	}
	for range c.flying {
		<-c.ended
	}
}

// look begins the calls that are due and may begin.
func (c *controllerCalls) look(ctx context.Context) {
	snapshot := c.store.Snapshot()
	index := snapshot.TableIndex(statestore.TableClaims)
	if index == c.seen {
		return
	}
	calls, shared := volumes.Due(snapshot)
	if len(calls) == 0 && len(shared) == 0 {
		clear(c.failed)
		c.seen = index
		return
	}
	if len(shared) == 0 && !c.anyReady(calls) {
		return
	}
	// A leader that was deposed, or that lacks entries of the last one, must not detach a volume that is in
	// use by now.
	if err := c.leader.consistent(ctx); err != nil {
		return
	}
	calls, shared = volumes.Due(c.store.Snapshot())
	c.forget(calls)
	for _, call := range calls {
		if c.ready(call) {
			c.begin(ctx, call)
		}
	}
	if len(shared) > 0 {
		if err := c.update(ctx, shared); err != nil && ctx.Err() == nil {
			c.logger.Warn("claims of attached volumes could not be updated, and are tried again", "claims", len(shared), "error", err)
		}
	}
}

// forget forgets the failures of calls that are due no more.
func (c *controllerCalls) forget(calls []*volumes.Call) {
	due := make(map[callKey]bool, len(calls))
	for _, call := range calls {
		due[keyOfCall(call)] = true
	}
	for k := range c.failed {
		if !due[k] {
			delete(c.failed, k)
		}
	}
}

func (c *controllerCalls) anyReady(calls []*volumes.Call) bool {
	for _, call := range calls {
		if c.ready(call) {
			return true
		}
	}
	return false
}

// ready reports whether a call may begin now. It logs once that a call has no controller.
func (c *controllerCalls) ready(call *volumes.Call) bool {
	k := keyOfCall(call)
	failed := c.failed[k]
	if len(call.Controllers) == 0 {
		if !failed.noController {
			failed.noController = true
			c.failed[k] = failed
			c.log(call).Warn("a volume waits for a controller", "error", errNoController)
		}
		return false
	}
	if _, flies := c.flying[k.volume]; flies || len(c.flying) >= maxControllerCalls || time.Now().Before(failed.at) {
		return false
	}
	ofPlugin := 0
	for _, id := range c.flying {
		if id == call.Volume.Plugin {
			ofPlugin++
		}
	}
	return ofPlugin < maxCallsOfPlugin
}

// begin begins a call in a goroutine, which ends with the term.
func (c *controllerCalls) begin(ctx context.Context, call *volumes.Call) {
	c.flying[call.Volume.Key()] = call.Volume.Plugin
	controller := call.Controller(c.failed[keyOfCall(call)].failures)
	go func() { c.ended <- endedCall{call, c.call(ctx, call, controller)} }()
}

// call calls a controller, and proposes what is true then. It reads nothing that the loop writes.
func (c *controllerCalls) call(ctx context.Context, call *volumes.Call, controller cluster.NodeID) error {
	limited, cancel := context.WithTimeout(ctx, controllerCallTimeout)
	defer cancel()
	published, err := c.leader.config.Controllers.Call(limited, controller, call)
	if err == nil {
		err = cluster.CheckPublishContext(published)
	}
	if err != nil {
		return &callError{controller, err}
	}
	return c.update(ctx, call.Changes(published))
}

// callError is the error of one controller.
type callError struct {
	controller cluster.NodeID
	err        error
}

// Error names the controller.
func (e *callError) Error() string {
	return "controller on node " + string(e.controller) + ": " + e.err.Error()
}

// Unwrap returns the error of the controller.
func (e *callError) Unwrap() error { return e.err }

// update proposes changes of claims. A change that does not hold any more is refused, which is no error.
func (c *controllerCalls) update(ctx context.Context, changes []cluster.ClaimChange) error {
	m := &shims.ClaimUpdate{ClaimUpdate: cluster.ClaimUpdate{At: time.Now(), Changes: changes}}
	_, _, err := shims.Apply(ctx, c.leader.own, m)
	return err
}

// end notes the result of a call.
func (c *controllerCalls) end(ctx context.Context, e endedCall) {
	k := keyOfCall(e.call)
	delete(c.flying, k.volume)
	if e.err == nil {
		delete(c.failed, k)
		c.log(e.call).Info("a controller has served a volume")
		return
	}
	failed := c.failed[k]
	wait := maxCallBackoff
	if failed.failures < 5 {
		wait = minCallBackoff << failed.failures
	}
	failed.failures, failed.at = failed.failures+1, time.Now().Add(wait)
	c.failed[k] = failed
	if ctx.Err() == nil {
		c.log(e.call).Warn("a call of a controller failed, and is repeated", "failures", failed.failures, "wait", wait, "error", e.err)
	}
}

func (c *controllerCalls) log(call *volumes.Call) hclog.Logger {
	return c.logger.With("volume", call.Volume.Key(), "node", call.Node, "plugin", call.Volume.Plugin, "detach", call.Detach)
}
