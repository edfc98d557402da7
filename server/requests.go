package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Requests changes the state of a server's cluster: see [Server.Requests]. The methods work on the
// leader. The effects of a request depend on the state, so each method waits until the state contains the
// entries of earlier leaders. It returns when the change is applied here. Errors have a class of
// package httpapi: see [Classify]. All fields are set.
type Requests struct {
	// Replica has the state of the server.
	Replica interface {
		Store() *statestore.Store
		// CaughtUp and Consistent are those of [Server].
		CaughtUp(context.Context) error
		Consistent(context.Context) error
	}
	// Log takes the entries.
	Log shims.Proposals
	// Now returns the time of an entry, NewID the id of an evaluation or a drain.
	Now   func() time.Time
	NewID func() string
}

// Requests returns the requests that change the state of the cluster.
func (s *Server) Requests() Requests {
	return Requests{Replica: s, Log: s.requests, Now: time.Now, NewID: uuid.NewString}
}

// RegisterNode registers a node, or updates a known one. It leaves out the devices that the cluster version
// does not have: the client registers again when the version has grown. If the known node has another secret,
// the error is [statestore.ErrNodeSecret].
func (r Requests) RegisterNode(ctx context.Context, n *cluster.Node) (w cluster.Written, err error) {
	defer classify(&err)
	if n == nil {
		return w, errors.New("registering a node: node is missing")
	}
	if err := r.Replica.CaughtUp(ctx); err != nil {
		return w, err
	}
	n = n.At(r.Replica.Store().Snapshot().ClusterVersion()).Copy()
	n.Canonicalize()
	return r.write(ctx, &shims.NodeRegister{At: r.Now(), Node: n})
}

// PurgeNode deletes a node and ends its drain as node gone. The error is [statestore.ErrNodeNotFound].
func (r Requests) PurgeNode(ctx context.Context, id cluster.NodeID) (w cluster.Written, err error) {
	defer classify(&err)
	response, index, err := apply(ctx, r, &shims.NodeDeregister{At: r.Now(), Nodes: []cluster.NodeID{id}})
	if err == nil && len(response.Missing) > 0 {
		err = statestore.ErrNodeNotFound
	}
	return written(index, response.Evals, err)
}

// UpdateNodeStatus sets the status of a node, which follows from its heartbeats.
func (r Requests) UpdateNodeStatus(ctx context.Context, id cluster.NodeID, status cluster.NodeStatus) (w cluster.Written, err error) {
	defer classify(&err)
	return r.write(ctx, &shims.NodeUpdateStatus{At: r.Now(), Node: id, Status: status})
}

// AppendNodeEvent appends an event to a node's history, with the time of the entry. It needs cluster version 8.
func (r Requests) AppendNodeEvent(ctx context.Context, id cluster.NodeID, e cluster.NodeEvent) (w cluster.Written, err error) {
	defer classify(&err)
	e.Timestamp = r.Now().UTC()
	return r.write(ctx, &shims.NodeAppendEvent{Node: id, Event: e})
}

// UpdateEligibility sets whether a scheduler may use a node. It writes nothing if the node has that
// eligibility already, and the index is zero.
func (r Requests) UpdateEligibility(ctx context.Context, id cluster.NodeID, e cluster.Eligibility) (w cluster.Written, err error) {
	defer classify(&err)
	already, err := r.certainly(ctx, func(state *statestore.Snapshot) bool {
		n := state.Node(id)
		return n != nil && n.SchedulingEligibility == e
	})
	if already || err != nil {
		return w, err
	}
	return r.write(ctx, &shims.NodeUpdateEligibility{At: r.Now(), Node: id, Eligibility: e})
}

// EvaluateNode makes evaluations of the jobs that have an allocation on a node or may use it.
// Without such jobs it writes nothing, and the index is zero. The error is
// [statestore.ErrNodeNotFound].
func (r Requests) EvaluateNode(ctx context.Context, id cluster.NodeID) (w cluster.Written, err error) {
	defer classify(&err)
	var known bool
	var evals []*cluster.Evaluation
	nothing, err := r.certainly(ctx, func(state *statestore.Snapshot) bool {
		evals = nil
		if known = state.Node(id) != nil; known {
			evals = scheduler.NodeEvals(state.WorkView(), id, cluster.TriggerNodeUpdate, r.Now(), r.newEvalID)
		}
		return len(evals) == 0
	})
	switch {
	case err != nil:
		return w, err
	case !known:
		return w, statestore.ErrNodeNotFound
	case nothing:
		return w, nil
	}
	return r.write(ctx, &shims.EvalUpdate{Evals: evals})
}

// RegisterJob registers a job or its next version, and has it scheduled. If the registered job does not have
// the index that o names when the change is applied, the error wraps [cluster.ErrModifyIndex]. A registration
// of the same work makes no new version: the job is only scheduled again.
func (r Requests) RegisterJob(ctx context.Context, j *cluster.Job, o cluster.JobRegistration) (w cluster.Written, err error) {
	defer classify(&err)
	j = j.Copy()
	if j != nil {
		j.Canonicalize()
	}
	if err = j.Validate(); err == nil {
		err = feasible.Check(j)
	}
	if err != nil {
		return w, fmt.Errorf("registering a job: %w", err)
	}
	evals, unchanged := r.jobEval(j, cluster.TriggerJobRegister, o.EvalPriority), uint64(0)
	same, err := r.certainly(ctx, func(state *statestore.Snapshot) bool {
		before := state.Job(j.Key())
		if !before.SameWork(j) || o.At != nil && before.CheckModifyIndex(*o.At) != nil {
			return false
		}
		unchanged = before.JobModifyIndex
		return true
	})
	if err != nil {
		return w, err
	}
	if same {
		w, err = r.write(ctx, &shims.EvalUpdate{Evals: evals})
		w.Unchanged = unchanged
		return w, err
	}
	m := &shims.JobRegister{Job: j, Evals: evals}
	if o.At != nil {
		m.EnforceIndex, m.JobModifyIndex = true, *o.At
	}
	return r.write(ctx, m)
}

// EvaluateJob makes an evaluation of a job. The error is [statestore.ErrJobNotFound].
func (r Requests) EvaluateJob(ctx context.Context, key cluster.JobKey) (w cluster.Written, err error) {
	defer classify(&err)
	j, err := r.job(ctx, key)
	if err != nil {
		return w, err
	}
	return r.write(ctx, &shims.EvalUpdate{Evals: r.jobEval(j, cluster.TriggerJobRegister, 0)})
}

// StopJob stops a job and makes an evaluation of it. With o.Purge it deletes the job, its evaluations
// and its ended allocations: see [statestore.PurgeJob]. The error is [statestore.ErrJobNotFound].
func (r Requests) StopJob(ctx context.Context, key cluster.JobKey, o cluster.JobStop) (w cluster.Written, err error) {
	defer classify(&err)
	m := &shims.JobDeregister{Job: key, Purge: o.Purge}
	if !o.Purge || o.EvalPriority != 0 {
		j, err := r.job(ctx, key)
		if err != nil {
			return w, err
		}
		m.Evals = r.jobEval(j, cluster.TriggerJobDeregister, o.EvalPriority)
	}
	if o.Purge && r.Replica.Store().Snapshot().ClusterVersion() >= cluster.VersionOfConfirmation {
		m.At = r.Now() // the entry of a stop has no time: its evaluation brings it
	}
	return r.write(ctx, m)
}

// StopAlloc stops an allocation, which is replaced: its node may get the replacement. One that is leaving
// or has ended is only evaluated again. The error is [statestore.ErrAllocNotFound].
func (r Requests) StopAlloc(ctx context.Context, id cluster.AllocID) (w cluster.Written, err error) {
	defer classify(&err)
	var evals []*cluster.Evaluation
	at := r.Now()
	missing, err := r.certainly(ctx, func(state *statestore.Snapshot) bool {
		evals = scheduler.AllocEval(state.WorkView(), id, cluster.TriggerAllocStop, at, r.newEvalID())
		return len(evals) == 0
	})
	switch {
	case err != nil:
		return w, err
	case missing:
		return w, statestore.ErrAllocNotFound
	}
	return r.write(ctx, &shims.AllocStop{At: at, Alloc: id, Evals: evals})
}

// UpdateDrain starts, updates or ends the drain of a node. The time is set here, and so is the id of the
// drain if there is none. After an error, repeat the request with the same Key: a request that was applied is
// not applied twice.
func (r Requests) UpdateDrain(ctx context.Context, u cluster.DrainUpdate) (done cluster.DrainWritten, err error) {
	defer classify(&err)
	u.At = r.Now()
	if u.Drain == "" {
		u.Drain = cluster.DrainID(r.NewID())
	}
	if r.Replica.Store().Snapshot().ClusterVersion() < cluster.VersionOfJournals {
		u.Plan = nil // no journal would keep it
	}
	response, index, err := apply(ctx, r, &shims.NodeUpdateDrain{DrainUpdate: u})
	w, err := written(index, response.Evals, err)
	return cluster.DrainWritten{Written: w, DrainResult: response.DrainResult}, err
}

// ConfirmDrain confirms that no task of an ended drain runs on its node. by is the operator. The error
// is [statestore.ErrDrainNotFound] or [statestore.ErrDrainRuns], or wraps [cluster.ErrVersion].
func (r Requests) ConfirmDrain(ctx context.Context, id cluster.DrainID, by string) (w cluster.Written, err error) {
	defer classify(&err)
	_, index, err := apply(ctx, r, &shims.ConfirmDrain{At: r.Now(), Drain: id, By: by})
	return written(index, nil, err)
}

// PauseDrains pauses or resumes one drain, or all. The time is set here. A repeated request changes nothing. The error
// is [statestore.ErrNodeNotFound] or [statestore.ErrNotDraining], or wraps [statestore.ErrNotPausable] or
// [cluster.ErrVersion].
func (r Requests) PauseDrains(ctx context.Context, u cluster.DrainPauseUpdate) (done cluster.DrainPauseWritten, err error) {
	defer classify(&err)
	u.At = r.Now()
	response, index, err := apply(ctx, r, &shims.PauseDrains{DrainPauseUpdate: u})
	w, err := written(index, nil, err)
	return cluster.DrainPauseWritten{Written: w, DrainPauseResult: response.DrainPauseResult}, err
}

// ReportAllocs writes the reports of clients; one call may hold those of many clients. It leaves
// out reports of allocations that do not exist or are on another node. If no report is left it
// writes nothing, and the index is zero.
func (r Requests) ReportAllocs(ctx context.Context, reports []cluster.AllocReport) (w cluster.Written, err error) {
	defer classify(&err)
	var own []cluster.AllocReport
	var version cluster.Version
	_, err = r.certainly(ctx, func(state *statestore.Snapshot) bool {
		own, version = ownReports(state, reports), state.ClusterVersion()
		return len(own) < len(reports) || len(own) == 0
	})
	if err != nil || len(own) == 0 {
		return w, err
	}
	if version < cluster.VersionOfData {
		own = withoutData(own)
	}
	m := &shims.AllocClientUpdate{Reports: own}
	if version >= cluster.VersionOfConfirmation {
		m.At = r.Now()
	}
	return r.write(ctx, m)
}

// ownReports are the reports of allocations by the nodes that they are on.
func ownReports(state *statestore.Snapshot, reports []cluster.AllocReport) (own []cluster.AllocReport) {
	for _, r := range reports {
		if a := state.Alloc(r.Alloc); a != nil && a.NodeID == r.Node {
			own = append(own, r)
		}
	}
	return own
}

// withoutData returns the reports as a cluster version without moves of data has them.
func withoutData(reports []cluster.AllocReport) []cluster.AllocReport {
	reports = slices.Clone(reports)
	for i := range reports {
		reports[i].DataIn, reports[i].DataOut = nil, nil
	}
	return reports
}

// RegisterVolume registers a volume, or changes a registered one. The error describes what is wrong with the
// volume, or wraps [statestore.ErrVolumeInUse].
func (r Requests) RegisterVolume(ctx context.Context, volume *cluster.Volume) (w cluster.Written, err error) {
	defer classify(&err)
	if volume == nil {
		return w, errors.New("registering a volume: volume is missing")
	}
	return r.write(ctx, &shims.VolumeRegister{At: r.Now(), Volume: volume.Copy()})
}

// DeregisterVolume deletes a volume, with force also one that has claims. The error is
// [statestore.ErrVolumeNotFound], or wraps [statestore.ErrVolumeInUse].
func (r Requests) DeregisterVolume(ctx context.Context, k cluster.VolumeKey, force bool) (w cluster.Written, err error) {
	defer classify(&err)
	return r.write(ctx, &shims.VolumeDeregister{Volume: k, Force: force})
}

// DetachVolume makes the node unmount the volume from allocations that have ended. With force its claims
// go on as if the node had, and the allocations that use it there are stopped and replaced. The error is
// [statestore.ErrClaimNotFound], or wraps [statestore.ErrVolumeInUse].
func (r Requests) DetachVolume(ctx context.Context, k cluster.VolumeKey, n cluster.NodeID, force bool) (w cluster.Written, err error) {
	defer classify(&err)
	return r.write(ctx, &shims.VolumeDetach{At: r.Now(), Volume: k, Node: n, Force: force})
}

// UpdateClaims applies the changes of claims that hold. Without changes it writes nothing, and the index is
// zero.
func (r Requests) UpdateClaims(ctx context.Context, changes []cluster.ClaimChange) (w cluster.Written, err error) {
	defer classify(&err)
	if len(changes) == 0 {
		return w, nil
	}
	_, index, err := apply(ctx, r, &shims.ClaimUpdate{ClaimUpdate: cluster.ClaimUpdate{At: r.Now(), Changes: changes}})
	return written(index, nil, err)
}

// Collect deletes all ended work that nothing needs, of every age, and returns what it has deleted, also
// with an error. The caller may repeat it. The error wraps [cluster.ErrVersion] if the cluster has an
// older version than [collect.Version].
func (r Requests) Collect(ctx context.Context) (deleted cluster.Collected, err error) {
	defer classify(&err)
	if err := r.Replica.CaughtUp(ctx); err != nil {
		return deleted, err
	}
	round := collect.Everything(r.Now())
	for request := round.Next(r.Replica.Store().Snapshot().WorkView()); request != nil; request = round.Next(r.Replica.Store().Snapshot().WorkView()) {
		done, err := collectRows(ctx, r.Log, request)
		if err != nil {
			return deleted, err
		}
		deleted = deleted.Plus(done)
	}
	return deleted, nil
}

// RaiseVersion raises the cluster version. Every server of the cluster must understand it: a server
// that does not stops at the entry. So the caller reads the versions of all servers first, and admits no
// server that does not understand it. After an error that wraps [shims.ErrUnknown] the version may still
// rise.
func (r Requests) RaiseVersion(ctx context.Context, v cluster.Version) (w cluster.Written, err error) {
	defer classify(&err)
	return r.write(ctx, &shims.RaiseClusterVersion{Version: v})
}

// apply proposes a message and waits until it is applied.
func apply[R shims.Response](ctx context.Context, r Requests, m shims.Request[R]) (response R, index uint64, err error) {
	if err := r.Replica.CaughtUp(ctx); err != nil {
		return response, 0, err
	}
	return shims.Apply(ctx, r.Log, m)
}

// write is apply for messages with the usual response.
func (r Requests) write(ctx context.Context, m shims.Request[shims.ChangeApplied]) (cluster.Written, error) {
	response, index, err := apply(ctx, r, m)
	return written(index, response.Evals, err)
}

// written is the result of an entry, unless it failed.
func written(index uint64, evals []cluster.EvalID, err error) (cluster.Written, error) {
	if err != nil {
		return cluster.Written{}, err
	}
	return cluster.Written{Index: index, Evals: evals}, nil
}

// certainly reports whether a condition holds in the newest state. A true condition is checked
// again in a state that shows every acknowledged write: that of a deposed leader never will.
func (r Requests) certainly(ctx context.Context, holds func(*statestore.Snapshot) bool) (bool, error) {
	if err := r.Replica.CaughtUp(ctx); err != nil {
		return false, err
	}
	if !holds(r.Replica.Store().Snapshot()) {
		return false, nil
	}
	if err := r.Replica.Consistent(ctx); err != nil {
		return false, err
	}
	return holds(r.Replica.Store().Snapshot()), nil
}

// job returns the job, or [statestore.ErrJobNotFound] if the newest state does not have it.
func (r Requests) job(ctx context.Context, key cluster.JobKey) (j *cluster.Job, err error) {
	missing, err := r.certainly(ctx, func(state *statestore.Snapshot) bool {
		j = state.Job(key)
		return j == nil
	})
	if missing {
		err = statestore.ErrJobNotFound
	}
	return j, err
}

// jobEval is an evaluation of the job, with the priority of the job for zero.
func (r Requests) jobEval(j *cluster.Job, trigger cluster.EvalTrigger, priority int) []*cluster.Evaluation {
	e := scheduler.JobEval(j, trigger, r.Now(), r.newEvalID())
	e.Priority = cmp.Or(priority, e.Priority)
	return []*cluster.Evaluation{e}
}

func (r Requests) newEvalID() cluster.EvalID { return cluster.EvalID(r.NewID()) }
