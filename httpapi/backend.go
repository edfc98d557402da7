package httpapi

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Backend is the server whose API a [Handler] is. All of it is safe for concurrent
// use.
type Backend struct {
	// Reader reads the state; never nil.
	Reader Reader
	// Writer changes it through the log; never nil.
	Writer Writer
	// Peers are the servers of the cluster; never nil.
	Peers Peers
	// Drains explains running drains; never nil.
	Drains Explainer
	// Access says who may do what; nil lets everybody do everything.
	Access Access
}

// State is the replicated state at one index. It does not change, and nothing in it
// is written to.
type State interface {
	// Index is the raft index of the newest entry in the state.
	Index() uint64
	// ClusterVersion names what the servers may write.
	ClusterVersion() cluster.Version
	// TableIndex is the index of the newest write to a table, or zero; see the Table
	// constants.
	TableIndex(table string) uint64

	// Node returns the node, or nil. Nodes yields all, by id; NodesByPrefix those whose
	// id begins so.
	Node(cluster.NodeID) *cluster.Node
	Nodes() iter.Seq[*cluster.Node]
	NodesByPrefix(prefix string) iter.Seq[*cluster.Node]

	// Alloc returns the allocation, or nil. The others yield theirs, whatever became of
	// them, by id.
	Alloc(cluster.AllocID) *cluster.Allocation
	Allocs() iter.Seq[*cluster.Allocation]
	AllocsByNode(cluster.NodeID) iter.Seq[*cluster.Allocation]
	AllocsByJob(cluster.JobKey) iter.Seq[*cluster.Allocation]

	// Job returns the current version of the job, or nil. Jobs yields all, by namespace
	// and id.
	Job(cluster.JobKey) *cluster.Job
	Jobs() iter.Seq[*cluster.Job]

	// Eval returns the evaluation, or nil.
	Eval(cluster.EvalID) *cluster.Evaluation
	Evals() iter.Seq[*cluster.Evaluation]
	EvalsByJob(cluster.JobKey) iter.Seq[*cluster.Evaluation]

	// DrainRecord returns the record of an ended drain, or nil. Drains yields all that
	// are kept, the newest last; DrainsByNode those of a node.
	DrainRecord(cluster.DrainID) *cluster.Drain
	Drains() iter.Seq[*cluster.Drain]
	DrainsByNode(cluster.NodeID) iter.Seq[*cluster.Drain]
	// DrainingNodes yields the nodes that drain, by id.
	DrainingNodes() iter.Seq[*cluster.Node]
}

// The tables of [State.TableIndex].
const (
	TableNodes  = "nodes"
	TableAllocs = "allocs"
	TableJobs   = "jobs"
	TableEvals  = "evals"
	TableDrains = "drains"
)

// Reader reads the state.
type Reader interface {
	// Read calls query with the newest state, again whenever what it has read has
	// changed, until the index it returns is above minIndex or ctx ends; a minIndex of
	// zero never waits. It runs one query at a time, in the caller's goroutine. The error
	// is the query's, the context's, or wraps [ErrReplaced].
	Read(ctx context.Context, minIndex uint64, query func(State) (index uint64, err error)) error
	// CaughtUp returns when the state shows every write that was acknowledged by earlier
	// leaders: what is decided from it before, such as whose a node is, may be wrong. It
	// costs next to nothing but in the beginning of a term. The errors are those of
	// Consistent.
	CaughtUp(ctx context.Context) error
	// Consistent returns when the state shows every write that was acknowledged before
	// the call. The error wraps [ErrNotLeader] on a server that does not lead.
	Consistent(ctx context.Context) error
}

// Written is what became of a write.
type Written struct {
	// Index is the raft index of the entry; zero if none was needed.
	Index uint64
	// Evals are the evaluations that the entry made, or nil.
	Evals []cluster.EvalID
}

// DrainRequest is a request to start, update or end the drain of a node.
type DrainRequest struct {
	Node cluster.NodeID
	// Spec is what the operator asks for, or nil to end the drain.
	Spec *cluster.DrainSpec
	// MarkEligible makes the node eligible if the request leaves it not draining.
	MarkEligible bool
	// Key is the idempotency key, or empty.
	Key string
	// Meta and UpdatedBy are what the operator says of the request, or empty.
	Meta      map[string]string
	UpdatedBy string
}

// DrainWritten is what became of a [DrainRequest].
type DrainWritten struct {
	Written
	// Drain is the drain that the request started, updated or ended, or empty.
	Drain cluster.DrainID
	// Repeated says that the key was seen before and nothing changed.
	Repeated bool
	// Withdrawn counts the marks that ending the drain withdrew; Stopping are the
	// allocations, by id, whose mark could not be.
	Withdrawn int
	Stopping  []cluster.AllocID
}

// Writer changes the state. Its methods return when the change is applied here. An
// error wraps [ErrNotLeader] if the server does not lead, [ErrUnavailable] if the
// change was surely not made and may be asked for again, [ErrUnknown] if it may have
// been made, [ErrNotFound] if what it is about does not exist, [ErrTooLarge] if it cannot
// be written for its size; any other says why it was refused.
type Writer interface {
	UpdateDrain(context.Context, DrainRequest) (DrainWritten, error)
	UpdateEligibility(context.Context, cluster.NodeID, cluster.Eligibility) (Written, error)
	PurgeNode(context.Context, cluster.NodeID) (Written, error)
	EvaluateNode(context.Context, cluster.NodeID) (Written, error)

	RegisterJob(context.Context, *cluster.Job) (Written, error)
	EvaluateJob(context.Context, cluster.JobKey) (Written, error)
	// StopJob stops a job, or with purge deletes it and all that hangs on it.
	StopJob(ctx context.Context, key cluster.JobKey, purge bool) (Written, error)

	// RegisterNode, Heartbeat and ReportAllocs are what clients call. The TTL is how
	// soon the client must be heard again, or its node is down. A registration with
	// another secret than the node has is refused with [ErrForbidden].
	RegisterNode(context.Context, *cluster.Node) (ttl time.Duration, err error)
	Heartbeat(context.Context, cluster.NodeID) (ttl time.Duration, err error)
	ReportAllocs(context.Context, []cluster.AllocReport) (Written, error)
}

// Errors of a [Writer] and a [Reader].
var (
	// ErrNotLeader: another server leads, or none does. The handler forwards.
	ErrNotLeader = errors.New("this server does not lead")
	// ErrUnavailable: the change was surely not made. Ask again.
	ErrUnavailable = errors.New("the write was not made")
	// ErrUnknown: the change may have been made. Look, or ask again with the same key.
	ErrUnknown = errors.New("the outcome of the write is not known")
	// ErrNotFound: what the request is about does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNodeDraining: a node cannot be made eligible while it drains. End the drain
	// first.
	ErrNodeDraining = errors.New("can not set node's scheduling eligibility to eligible while it is draining")
	// ErrForbidden: who asks may not do that, whatever they try.
	ErrForbidden = errors.New("permission denied")
	// ErrTooLarge: the change is too large to be written. Ask for less.
	ErrTooLarge = errors.New("too large")
	// ErrReplaced: a snapshot was restored while its predecessor was read. Read again.
	ErrReplaced = errors.New("the state was replaced")
)

// Peers are the servers of a cluster, as one of them knows them.
type Peers interface {
	// Leads reports whether this server believes that it leads.
	Leads() bool
	// Forward has the leader answer the request, headers and body included, and passes
	// its answer on. It answers 500 "No cluster leader" itself if there is none. What
	// was forwarded once is not forwarded again: the request says so in a header of the
	// handler's, which Forward leaves alone.
	Forward(http.ResponseWriter, *http.Request)
	// Leader is the address of the leader's raft, or empty if none is known.
	Leader() string
	// Members are the servers, by id.
	Members() []Member
	// LastContact is how long ago a server that does not lead has heard of the leader;
	// zero on the leader.
	LastContact() time.Duration
	// Name is this server's id.
	Name() string

	// Join adds a server, or brings its address up to date; Remove removes one. The
	// errors are those of a [Writer].
	Join(ctx context.Context, id, address string) error
	Remove(ctx context.Context, id string) error
}

// Member is one server of the cluster.
type Member struct {
	ID, Address string
	Leader      bool
	Voter       bool
	// Understands are the cluster versions that it understands; zero if the server that
	// is asked does not know. The leader knows it of every server that answers.
	Understands cluster.Versions
}

// Explainer says how far running drains are, and why what is left has not moved. Both
// return an error that wraps [rules.ErrNotDraining] or [rules.ErrNotEnabled]: the
// latter on a server that does not lead.
type Explainer interface {
	Explain(cluster.NodeID) (rules.Report, error)
	Status() ([]rules.Status, error)
}

// Access says who may do what.
type Access interface {
	// Identify returns who has the token, empty if the request had none. ok is false if
	// nobody has: the answer is 403 then.
	Identify(token string) (who Identity, ok bool)
}

// Identity is who makes a request, and what they may do.
type Identity struct {
	// Name is written into what they change, never secret.
	Name string
	// Read and Write are the two rights; who may write may read.
	Read, Write bool
}
