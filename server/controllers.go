package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Controllers calls the controllers of storage plugins on their nodes. It is safe for concurrent use.
type Controllers interface {
	// Call makes the controller on the node execute the call, and returns the publish context of an
	// attachment. After an error it is unknown whether the controller has done it. The error wraps
	// [volumes.ErrNoAnswer] if the controller may still do it.
	Call(ctx context.Context, controller cluster.NodeID, c *volumes.Call) (publishContext map[string]string, err error)
}

// callInterval is how often the leader checks which calls of controllers are due.
const callInterval = time.Second

// errNoController means that no controller of a plugin can be called.
var errNoController = errors.New("no healthy controller of the storage plugin attaches volumes")

// controllerCalls calls controllers during one term. What is due follows from the state. The next leader
// repeats a call whose answer is lost: calls of controllers are idempotent. It belongs to one goroutine.
type controllerCalls struct {
	leader *leader
	store  *statestore.Store
	logger hclog.Logger
	caller *volumes.Caller
	// lacking are the due calls whose lack of a controller is in the log.
	lacking map[lackingCall]bool
	// ended receives the calls that have ended.
	ended chan endedCall
	// due are the calls that were due at the last check.
	due []*volumes.Call
	// idle is the index of the claims in which no call was due, or zero.
	idle uint64
}

// lackingCall names a call for as long as it is due.
type lackingCall struct {
	volume cluster.VolumeKey
	node   cluster.NodeID
}

// endedCall is an attempt of a call with its result.
type endedCall struct {
	attempt volumes.Attempt
	err     error
}

// callControllers calls the controllers that claims of volumes wait for, until the term ends. It joins the
// calls in flight.
func (l *leader) callControllers(ctx context.Context, store *statestore.Store) {
	c := &controllerCalls{
		leader: l, store: store, logger: l.config.Logger.Named("volumes"),
		caller: volumes.NewCaller(), lacking: make(map[lackingCall]bool), ended: make(chan endedCall, volumes.MaxCalls),
	}
	defer l.failing.Store(nil)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case e := <-c.ended:
			c.end(ctx, e)
			c.check(ctx)
		case <-timer.C:
			failing := c.caller.Failing(c.due) // before new attempts begin, of which nothing is known
			l.failing.Store(&failing)
			c.check(ctx)
			timer.Reset(callInterval)
		}
	}
	for range c.caller.Flying() {
		<-c.ended
	}
}

// check begins the calls that are due and may begin.
func (c *controllerCalls) check(ctx context.Context) {
	snapshot := c.store.Snapshot()
	index := snapshot.TableIndex(statestore.TableClaims)
	if index == c.idle {
		return
	}
	calls, shared := volumes.Due(snapshot.WorkView())
	c.due = calls
	if len(calls) == 0 && len(shared) == 0 {
		c.caller.Forget(nil)
		clear(c.lacking)
		c.idle = index
		return
	}
	c.lack(calls)
	now := time.Now()
	if len(shared) == 0 && !slices.ContainsFunc(calls, func(call *volumes.Call) bool { return c.caller.Ready(call, now) }) {
		return
	}
	// A leader that was deposed, or that lacks entries of the last one, must not detach a volume that is in
	// use by now.
	if err := c.leader.consistent(ctx); err != nil {
		return
	}
	calls, shared = volumes.Due(c.store.Snapshot().WorkView())
	c.caller.Forget(calls)
	for _, call := range calls {
		if c.caller.Ready(call, now) {
			c.begin(ctx, call)
		}
	}
	if len(shared) > 0 {
		if err := c.update(ctx, shared); err != nil && ctx.Err() == nil {
			c.logger.Warn("claims of attached volumes could not be updated, and the leader retries", "claims", len(shared), "error", err)
		}
	}
}

// lack logs once that a due call has no controller.
func (c *controllerCalls) lack(calls []*volumes.Call) {
	due := make(map[lackingCall]bool, len(calls))
	for _, call := range calls {
		if len(call.Controllers) > 0 {
			continue
		}
		k := lackingCall{call.Volume.Key(), call.Node}
		due[k] = true
		if !c.lacking[k] {
			c.log(call).Warn("a volume waits for a controller", "error", errNoController)
		}
	}
	c.lacking = due
}

// begin begins a call in a goroutine, which ends with the term.
func (c *controllerCalls) begin(ctx context.Context, call *volumes.Call) {
	attempt := c.caller.Begin(call)
	go func() { c.ended <- endedCall{attempt, c.call(ctx, attempt)} }()
}

// call calls a controller, and proposes what is true then. It reads nothing that the loop writes.
func (c *controllerCalls) call(ctx context.Context, a volumes.Attempt) error {
	limited, cancel := context.WithTimeout(ctx, volumes.CallTimeout)
	defer cancel()
	published, err := c.leader.config.Controllers.Call(limited, a.Controller, a.Call)
	if err != nil && limited.Err() != nil {
		return fmt.Errorf("%w: %w", volumes.ErrNoAnswer, err)
	}
	if err == nil {
		err = cluster.CheckPublishContext(published)
	}
	if err != nil || !a.Completes {
		return err
	}
	if err := c.update(ctx, a.Changes(published)); err != nil {
		return fmt.Errorf("the call of the controller succeeded, but the servers could not write the result: %w", err)
	}
	return nil
}

// update proposes changes of claims. A change that does not hold any more is refused, which is no error.
func (c *controllerCalls) update(ctx context.Context, changes []cluster.ClaimChange) error {
	m := &shims.ClaimUpdate{ClaimUpdate: cluster.ClaimUpdate{At: time.Now(), Changes: changes}}
	_, _, err := shims.Apply(ctx, c.leader.own, m)
	return err
}

// end records the result of a call.
func (c *controllerCalls) end(ctx context.Context, e endedCall) {
	if e.err == nil {
		c.caller.Succeeded(e.attempt)
		c.log(e.attempt.Call).Info("a call of a controller succeeded")
		return
	}
	failed := c.caller.Failed(e.attempt, time.Now(), e.err)
	if ctx.Err() == nil {
		c.log(e.attempt.Call).Warn("a call of a controller failed, and the leader retries", "controller", failed.Controller, "failures", failed.Failures,
			"wait", failed.NextAt.Sub(failed.LastAt), "error", e.err)
	}
}

func (c *controllerCalls) log(call *volumes.Call) hclog.Logger {
	return c.logger.With("volume", call.Volume.Key(), "node", call.Node, "plugin", call.Volume.Plugin, "detach", call.Detach)
}

// FailingCalls returns the due calls of controllers that have failed or have no controller, by volume and
// node, at most two seconds old. It is empty on a server that does not lead. It is not written to.
func (s *Server) FailingCalls() []volumes.FailedCall {
	if failing := s.leader.failing.Load(); failing != nil {
		return *failing
	}
	return nil
}
