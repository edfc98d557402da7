package wire

import (
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// DrainSpec is the strategy that an operator requests.
type DrainSpec struct {
	// Deadline is in nanoseconds: above zero it counts from the request, zero is no
	// limit, below zero forces.
	Deadline         time.Duration
	IgnoreSystemJobs bool
	// MaxSurge is max_surge for all groups that the drain moves and that have a lower one. It needs cluster version 9.
	// Ours.
	MaxSurge int `json:",omitempty"`
}

// Spec is the strategy as the servers keep it.
func (s DrainSpec) Spec() cluster.DrainSpec {
	return cluster.DrainSpec{Deadline: s.Deadline, IgnoreSystemJobs: s.IgnoreSystemJobs, MaxSurge: s.MaxSurge}
}

func newDrainSpec(s cluster.DrainSpec) DrainSpec {
	return DrainSpec{Deadline: s.Deadline, IgnoreSystemJobs: s.IgnoreSystemJobs, MaxSurge: s.MaxSurge}
}

// DrainStrategy is a [DrainSpec] with the times that its request fixed.
type DrainStrategy struct {
	Deadline         time.Duration
	ForceDeadline    Time
	IgnoreSystemJobs bool
	StartedAt        Time
	// MaxSurge is that of the [DrainSpec]. Ours.
	MaxSurge int `json:",omitempty"`
}

func newDrainStrategy(s cluster.DrainStrategy) *DrainStrategy {
	return &DrainStrategy{
		Deadline: s.Deadline, ForceDeadline: NewTime(s.ForceDeadline), IgnoreSystemJobs: s.IgnoreSystemJobs, StartedAt: NewTime(s.StartedAt),
		MaxSurge: s.MaxSurge,
	}
}

// DrainMetadata is the reference's account of a node's last drain. Its times are whole
// seconds.
type DrainMetadata struct {
	AccessorID string
	Meta       map[string]string
	StartedAt  Time
	// Status is draining, complete or canceled.
	Status    string
	UpdatedAt Time
}

func newDrainMetadata(m *cluster.DrainMetadata) *DrainMetadata {
	if m == nil {
		return nil
	}
	return &DrainMetadata{
		AccessorID: m.AccessorID, Meta: m.Meta, StartedAt: NewTime(m.StartedAt), Status: string(m.Status), UpdatedAt: NewTime(m.UpdatedAt),
	}
}

// DrainRequest is the body of PUT /v1/node/{id}/drain. NodeID is not used: the path names the node.
type DrainRequest struct {
	NodeID string
	// DrainSpec is nil to end the drain.
	DrainSpec *DrainSpec
	// MarkEligible makes the node eligible if the request leaves it not draining.
	MarkEligible bool
	// Undo makes the node eligible if the request ends its drain, and the node was eligible when the drain began. It
	// needs cluster version 9. Ours.
	Undo bool `json:",omitempty"`
	// Meta describes the request; empty or nil keeps the Meta of the request before.
	Meta map[string]string
	// Plan is what a plan has foretold, or nil. The journal of the drain keeps it. Ours.
	Plan *DrainPlan `json:",omitempty"`
}

// DrainConfirmResponse answers PUT /v1/drain/{id}/confirm. Ours.
type DrainConfirmResponse struct{ Index uint64 }

// DrainPauseResponse answers the requests that pause or resume drains. Ours.
type DrainPauseResponse struct {
	Index uint64
	// Changed reports whether the request changed anything.
	Changed bool
	// All is the pause of all drains after the request, or null.
	All *DrainPause
	// Drains are, by node, the drains that the request paused or resumed.
	Drains []PausedDrain
	// Skipped are, by node, the running drains that the pause of all does not hold.
	Skipped []SkippedDrain
}

// DrainPause is the pause of all drains. Ours.
type DrainPause struct {
	At Time
	// By is the operator who requested it.
	By string
}

// PausedDrain is a drain that was paused or resumed. Ours.
type PausedDrain struct {
	Drain string
	Node  string
	// Name is the node's name.
	Name string
	// ForceDeadline is the deadline after the request, or null.
	ForceDeadline Time
	// Stopping counts the marked allocations that have not ended. They stop all the same.
	Stopping int
}

// SkippedDrain is a running drain that the pause of all does not hold. Ours.
type SkippedDrain struct {
	Drain string
	Node  string
	// Name is the node's name.
	Name string
	// Why is the reason.
	Why string
}

// NewDrainPause returns the pause of all drains, or nil.
func NewDrainPause(p *cluster.DrainPause) *DrainPause {
	if p == nil {
		return nil
	}
	return &DrainPause{At: NewTime(p.At), By: p.By}
}

// NewDrainPauseResponse returns the answer to a request that paused or resumed drains. name returns the name of a node.
func NewDrainPauseResponse(w cluster.DrainPauseWritten, name func(cluster.NodeID) string) DrainPauseResponse {
	r := DrainPauseResponse{Index: w.Index, Changed: w.Changed, All: NewDrainPause(w.All), Drains: []PausedDrain{}, Skipped: []SkippedDrain{}}
	for _, d := range w.Drains {
		r.Drains = append(r.Drains, PausedDrain{
			Drain: string(d.Drain), Node: string(d.Node), Name: name(d.Node), ForceDeadline: NewTime(d.ForceDeadline), Stopping: d.Stopping,
		})
	}
	for _, d := range w.Skipped {
		r.Skipped = append(r.Skipped, SkippedDrain{Drain: string(d.Drain), Node: string(d.Node), Name: name(d.Node), Why: d.Why})
	}
	return r
}

// Spec is the requested strategy, or nil.
func (r *DrainRequest) Spec() *cluster.DrainSpec {
	if r.DrainSpec == nil {
		return nil
	}
	return new(r.DrainSpec.Spec())
}

// DrainResponse answers a [DrainRequest].
type DrainResponse struct {
	EvalCreateIndex uint64
	EvalIDs         []string
	// Index is that of the entry that was written; of a repeated request, that of the
	// entry that the first one wrote.
	Index           uint64
	NodeModifyIndex uint64

	// The following fields are ours.

	// DrainID is the drain that the request started, updated or ended, or empty.
	DrainID string `json:",omitempty"`
	// Repeated reports that a request with the same idempotency key was applied before: this one
	// changed nothing.
	Repeated bool `json:",omitempty"`
	// Withdrawn counts the allocations that ending the drain lets stay; StillStopping
	// are those, by id, that were to stop already.
	Withdrawn     int      `json:",omitempty"`
	StillStopping []string `json:",omitempty"`
	// Moved are, by job, the allocations that the ended drain has moved off the node or is stopping.
	Moved []MovedAllocs `json:",omitempty"`
}

// MovedAllocs counts the allocations of a job that a drain has moved. Ours.
type MovedAllocs struct {
	Namespace string
	JobID     string
	Allocs    int
}

// NewMovedAllocs returns the counts in the same order, or nil.
func NewMovedAllocs(moved []cluster.MovedAllocs) (all []MovedAllocs) {
	for _, m := range moved {
		all = append(all, MovedAllocs{Namespace: string(m.Job.Namespace), JobID: string(m.Job.ID), Allocs: m.Allocs})
	}
	return all
}

// DrainPlan is what a plan has foretold of a drain.
type DrainPlan struct {
	// Sentence is the plan in one line.
	Sentence string
	// Index is the raft index of the state that the plan was made from.
	Index uint64
	// Took is the time to the end of the drain, or zero if it does not end. Least and Most are the range, or zero without one.
	Took, Least, Most time.Duration
}

// Foretold returns the plan of a request, or nil. A long sentence is cut.
func (p *DrainPlan) Foretold() *cluster.DrainPlan {
	if p == nil {
		return nil
	}
	sentence := p.Sentence
	if len(sentence) > cluster.MaxPlanSentence {
		sentence = strings.ToValidUTF8(sentence[:cluster.MaxPlanSentence-3], "") + "..."
	}
	return &cluster.DrainPlan{Sentence: sentence, Index: p.Index, Took: p.Took, Least: p.Least, Most: p.Most}
}

func newDrainPlan(p *cluster.DrainPlan) *DrainPlan {
	if p == nil {
		return nil
	}
	return &DrainPlan{Sentence: p.Sentence, Index: p.Index, Took: p.Took, Least: p.Least, Most: p.Most}
}
