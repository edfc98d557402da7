package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
)

// Backend is the server behind a [Handler]. All of it is safe for concurrent use.
type Backend struct {
	// Reader reads the state; never nil.
	Reader Reader
	// Writer changes it through the log; never nil.
	Writer Writer
	// Peers are the servers of the cluster; never nil.
	Peers Peers
	// Drains explains running drains; never nil.
	Drains Explainer
	// Access identifies callers; nil gives every caller all rights.
	Access Access
	// Snapshots saves and restores the whole state. Nil: these routes answer 501.
	Snapshots Snapshots
	// Planner previews the registration of jobs. Nil: the route answers 501.
	Planner Planner
	// Nodes reaches the clients of nodes. Nil: these routes answer 501.
	Nodes Nodes
	// Controllers returns the calls of controllers that fail. Nil: answers name none.
	Controllers Controllers
}

// State is the replicated state at one index. It does not change, and nothing in it
// is written to.
type State interface {
	// Index is the raft index of the newest entry in the state.
	Index() uint64
	// Abandoned reports whether a snapshot was restored since. The rows of the restored state may have
	// lower indexes than those of this one.
	Abandoned() bool
	// History identifies the entries that led to this state, or is zero below cluster version 9. InHistory
	// reports whether the server has the changes since the state with this index and History. For zero, the
	// index must not be below that of the snapshot from which the server was restored. A query waits for
	// neither.
	History() uint64
	InHistory(index, history uint64) bool
	// RemovedAt is an index at or above that of the last entry that deleted an allocation that its client
	// may still run, or zero. A query does not wait for it.
	RemovedAt() uint64
	// ClusterVersion is the version of the entries that the servers may write.
	ClusterVersion() cluster.Version
	// TableIndex is the index of the newest write to a table, or zero; see the Table
	// constants.
	TableIndex(table string) uint64

	// Node returns the node, or nil. Nodes yields all nodes by id.
	Node(cluster.NodeID) *cluster.Node
	Nodes() iter.Seq[*cluster.Node]
	// Usage is the need of the node's allocations that are not client-terminal.
	Usage(cluster.NodeID) cluster.Usage

	// Alloc returns the allocation, or nil. The others yield allocations of any status, by id.
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

	// DrainRecord returns the record of an ended drain, or nil. Drains yields all records, the
	// newest last; DrainsByNode those of a node.
	DrainRecord(cluster.DrainID) *cluster.Drain
	// Story returns a drain, running or ended, and its journal. Each may be nil.
	Story(cluster.DrainID) (*cluster.Drain, *journal.Journal)
	Drains() iter.Seq[*cluster.Drain]
	DrainsByNode(cluster.NodeID) iter.Seq[*cluster.Drain]
	// Draining returns the nodes that drain, by id, and the pause of all drains, or nil. A write of the pause moves the
	// index of the nodes.
	Draining() (nodes iter.Seq[*cluster.Node], pause *cluster.DrainPause)

	volumes.View
	// Volumes yields all volumes, by namespace and id.
	Volumes() iter.Seq[*cluster.Volume]
}

// The tables of [State.TableIndex].
const (
	TableNodes  = "nodes"
	TableAllocs = "allocs"
	TableJobs   = "jobs"
	TableEvals  = "evals"
	TableDrains = "drains"

	TableVolumes = "volumes"
	TableClaims  = "claims"
)

// Reader reads the state.
type Reader interface {
	// Read calls query with the newest state, and again when a row that it read changes, until the
	// returned index is above minIndex or ctx ends. A minIndex of zero never waits. It runs one
	// query at a time, in the caller's goroutine. The error is the query's, the context's, or wraps
	// [ErrReplaced].
	Read(ctx context.Context, minIndex uint64, query func(State) (index uint64, err error)) error
	// CaughtUp returns when the state shows every write that earlier leaders acknowledged. A
	// decision from an older state may be wrong, such as the owner of a node. It is cheap except at
	// the beginning of a term. The errors are those of Consistent.
	CaughtUp(ctx context.Context) error
	// Consistent returns when the state shows every write that was acknowledged before
	// the call. The error wraps [ErrNotLeader] on a server that does not lead.
	Consistent(ctx context.Context) error
}

// Writer changes the state. Its methods return when the change is applied here. An error wraps
// [ErrNotLeader] if the server does not lead, [ErrUnavailable] if the change was not made and the
// caller may retry, [ErrUnknown] if it may have been made, [ErrNotFound] if its subject does not
// exist, [ErrTooLarge] if it is too large for an entry. Any other error describes why the change was
// refused.
type Writer interface {
	UpdateDrain(context.Context, cluster.DrainUpdate) (cluster.DrainWritten, error)
	// ConfirmDrain confirms that no task of an ended drain runs on its node. by is the operator. The
	// error wraps [ErrInUse] while the drain runs.
	ConfirmDrain(ctx context.Context, id cluster.DrainID, by string) (cluster.Written, error)
	// PauseDrains pauses or resumes one drain, or all. The error wraps [ErrInUse] if the node does not drain or the
	// drain cannot be paused.
	PauseDrains(context.Context, cluster.DrainPauseUpdate) (cluster.DrainPauseWritten, error)
	UpdateEligibility(context.Context, cluster.NodeID, cluster.Eligibility) (cluster.Written, error)
	PurgeNode(context.Context, cluster.NodeID) (cluster.Written, error)
	EvaluateNode(context.Context, cluster.NodeID) (cluster.Written, error)

	// RegisterJob registers a job or its next version. If the registered job does not have the index that r
	// names, the error wraps [cluster.ErrModifyIndex]. A registration of the same work makes no new version:
	// see [cluster.Job.SameWork] and [cluster.Written.Unchanged].
	RegisterJob(ctx context.Context, j *cluster.Job, r cluster.JobRegistration) (cluster.Written, error)
	EvaluateJob(context.Context, cluster.JobKey) (cluster.Written, error)
	// StopJob stops a job, or deletes it.
	StopJob(context.Context, cluster.JobKey, cluster.JobStop) (cluster.Written, error)

	// StopAlloc stops an allocation, which is replaced. One that is leaving or has ended is only
	// evaluated again.
	StopAlloc(context.Context, cluster.AllocID) (cluster.Written, error)

	// RegisterVolume registers a volume, or changes a registered one. DeregisterVolume deletes one: with
	// force also one with claims. DetachVolume requests that a node unmount one. With force the servers
	// continue as if the node had unmounted it. Claims that forbid the change make an error that wraps
	// [ErrInUse].
	RegisterVolume(context.Context, *cluster.Volume) (cluster.Written, error)
	DeregisterVolume(ctx context.Context, k cluster.VolumeKey, force bool) (cluster.Written, error)
	DetachVolume(ctx context.Context, k cluster.VolumeKey, n cluster.NodeID, force bool) (cluster.Written, error)
	// UpdateClaims applies the changes of claims that hold.
	UpdateClaims(context.Context, []cluster.ClaimChange) (cluster.Written, error)

	// Collect deletes all ended work that nothing needs, of every age. It returns what it has
	// deleted, also with an error.
	Collect(context.Context) (cluster.Collected, error)

	// Clients call RegisterNode, Heartbeat and ReportAllocs. A node goes down if its client sends
	// no heartbeat within the TTL. RegisterNode refuses a secret that is not the node's with
	// [ErrForbidden].
	RegisterNode(context.Context, *cluster.Node) (ttl time.Duration, err error)
	Heartbeat(context.Context, cluster.NodeID) (ttl time.Duration, err error)
	ReportAllocs(context.Context, []cluster.AllocReport) (cluster.Written, error)
}

// Errors of a [Writer] and a [Reader].
var (
	// ErrNotLeader: another server leads, or none does. The handler forwards.
	ErrNotLeader = errors.New("this server does not lead")
	// ErrUnavailable: the server cannot write or read now, and nothing has changed. Retry.
	ErrUnavailable = errors.New("the server is not available, and nothing has changed")
	// ErrUnknown: the change may have been made. Read the state, or retry with the same key.
	ErrUnknown = errors.New("the outcome of the write is not known")
	// ErrNotFound: the subject of the request does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNodeDraining: a node cannot be made eligible while it drains. End the drain
	// first.
	ErrNodeDraining = errors.New("can not set node's scheduling eligibility to eligible while it is draining")
	// ErrInUse: a volume has claims that forbid the change, or the state of a drain forbids it. Stop the allocations,
	// or force the change.
	ErrInUse = errors.New("volume in use")
	// ErrForbidden: the caller may not do that.
	ErrForbidden = errors.New("permission denied")
	// ErrTooLarge: the change is too large to be written. Request less.
	ErrTooLarge = errors.New("too large")
	// ErrBadSnapshot: a snapshot was refused, and nothing has changed. The text describes why.
	ErrBadSnapshot = errors.New("the snapshot was refused, and nothing has changed")
	// ErrReplaced: a snapshot was restored while its predecessor was read. Read again.
	ErrReplaced = errors.New("the state was replaced")
)

// Snapshots saves and restores the whole state, the secrets of nodes included.
type Snapshots interface {
	// Save returns a file with the newest state of this server. The caller closes it.
	Save(context.Context) (*SavedSnapshot, error)
	// Restore replaces the state of all servers by that of a file, and returns the new index. The
	// error wraps [ErrBadSnapshot], or is one of a [Writer].
	Restore(context.Context, io.Reader) (index uint64, err error)
}

// Nodes reaches the clients of nodes over the sessions that the clients hold. See package session.
type Nodes interface {
	// Hold makes the connection of a request the session of a node, and answers the request unless it
	// returns an error. The caller has checked that the node sends it. A new session of a node ends its old
	// one on this server. If the client of the node is another process, the error is a failure.
	Hold(w http.ResponseWriter, r *http.Request, id cluster.NodeID) error
	// Admit returns a failure if another process is the client of the node. begins: the process registers
	// the node. Only the leader admits a process.
	Admit(ctx context.Context, id cluster.NodeID, process string, begins bool) error
	// CheckClient returns a failure if another process has become the client of the node. It does not wait,
	// and changes nothing. Only the leader can answer.
	CheckClient(id cluster.NodeID, process string) error
	// Send sends a request to the client of a node, over a session of this server or of another one. The
	// caller closes the body of the answer; after the answer 101 it is an [io.ReadWriteCloser]. The error
	// wraps [ErrNoSession] or [ErrTooManyStreams] if the client has not got the request.
	Send(r *http.Request, id cluster.NodeID) (*http.Response, error)
}

// Errors of [Nodes].
var (
	// ErrNoSession: no server has a session of the node.
	ErrNoSession = errors.New("the node has no session with a server")
	// ErrTooManyStreams: the session of the node carries as many requests as it may.
	ErrTooManyStreams = errors.New("the session of the node has too many open streams")
)

// Controllers has the calls of controllers of storage plugins that the leader makes.
type Controllers interface {
	// FailingCalls returns the due calls that have failed or have no controller, by volume and node. It is
	// empty on a server that does not lead.
	FailingCalls() []volumes.FailedCall
}

// DrainQuestion is what a plan of drains answers.
type DrainQuestion struct {
	// Nodes are the nodes to drain, each once and never empty. They exist in the state of this server.
	Nodes []cluster.NodeID
	Spec  cluster.DrainSpec
	// OneByOne begins a drain when the one before has ended.
	OneByOne bool
	// Plays is how often to play the drains. Zero lets the planner choose.
	Plays int
}

// Planner has the scheduler's rules. It previews registrations and drains.
type Planner interface {
	// PlanDrains returns what drains would do, computed from the state of this server. It writes nothing. It
	// calls more after each play with the number of plays that are done, and ends if more returns false.
	// The error is the context's, or wraps [ErrNotFound] if a node does not exist any more.
	PlanDrains(ctx context.Context, q DrainQuestion, more func(done int) bool) (*drainplan.Answer, error)
	// PlanJob returns the plan that the scheduler would make if the job were registered, and the
	// state from which it made the plan. It writes nothing. The plan has at most most allocations that
	// replace no other. The job is valid and has its defaults. The error is one of [Reader].Consistent.
	PlanJob(ctx context.Context, j *cluster.Job, most int) (*cluster.Plan, State, error)
	// GivenUp returns the ended allocations of the job whose slots stay empty in the state of this server,
	// because too many in a row have failed, by id.
	GivenUp(cluster.JobKey) []cluster.AllocID
	// Rollouts returns the rollouts of the job that have not ended in the state of this server.
	Rollouts(cluster.JobKey) []cluster.GroupRollout
}

// SavedSnapshot is a file with the state.
type SavedSnapshot struct {
	io.ReadCloser
	// Size is its length in bytes, SHA256 its checksum, and Index the raft index of the state.
	Size   int64
	SHA256 [sha256.Size]byte
	Index  uint64
}

// Peers are the servers of a cluster, as one of them has them.
type Peers interface {
	// Leads reports whether this server leads, as far as its raft has learned.
	Leads() bool
	// Forward sends the request to the leader, with its headers and body, and copies the answer.
	// Without a leader it answers 500 with [NoLeaderText]. A forwarded request is not forwarded
	// again: a header of the handler marks it, and Forward keeps that header. It writes nothing and returns
	// false if this server has become the leader.
	Forward(http.ResponseWriter, *http.Request) (forwarded bool)
	// Pass sends the request to the other servers, one after the other, until one answers 200, and copies that
	// answer. It leaves out those that do not answer this server now. It writes nothing and returns false if no
	// server answers 200. The request has a GetBody, and a header of the handler marks it as forwarded.
	Pass(http.ResponseWriter, *http.Request) (answered bool)
	// Leader is the address of the leader's raft, or empty if none is known.
	Leader() string
	// Removed reports whether another server has removed this one from its cluster. The health of this
	// server reports it. False if this server has not read that yet.
	Removed() bool
	// Trouble states why this server cannot lead, such as a full disk, or is empty.
	Trouble() string
	// Members are the servers, by id.
	Members() []Member
	// Survey requests the status of every server of Members, and returns them with the answers. It waits a few seconds
	// at most, and needs no leader.
	Survey(context.Context) []Member
	// LastContact is the time since the last message of the leader to a server that does not lead; zero on the
	// leader.
	LastContact() time.Duration
	// Name is this server's id.
	Name() string
	// Cluster is the id of the cluster, or empty if this server does not have it.
	Cluster() string

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
	// Understands are the cluster versions that the server understands; zero if the receiving
	// server does not have them. The leader has them for every server that answers.
	Understands cluster.Versions

	// The following fields come from [Peers.Survey] alone.

	// LastContact is when another server last received a message of a server that did not answer, by the clock of
	// that other server; zero if none has it. A new leader only has the time for which the server has been silent
	// since it leads.
	LastContact time.Time
	// Alive reports whether the server answered. The fields after it are zero unless it did. An older
	// server leaves them zero, too.
	Alive bool
	// Started is when the server's process started.
	Started time.Time
	// Build is the version of its build.
	Build string
	// Newest is the index of the newest entry of its log, Applied that of the newest applied entry.
	Newest, Applied uint64
	// Agreement describes how the server's state compared at the index ComparedAt, which is zero before
	// the first comparison. The leader has it for every server that answers.
	Agreement  Agreement
	ComparedAt uint64
}

// Agreement is how the state of a server compares to the states of the others at the same index.
type Agreement string

const (
	// StateUnknown means that it was not compared.
	StateUnknown Agreement = ""
	// StateSame means that all compared servers have this state, or a majority of all servers.
	StateSame Agreement = "same"
	// StateDiffers means that a majority of the servers has another state. The server does not lead.
	StateDiffers Agreement = "differs"
	// StateUndecided means that no majority of the servers has the same state.
	StateUndecided Agreement = "undecided"
)

// Explainer reports the progress of running drains, and why the allocations left have not moved.
// Both methods return an error that wraps [rules.ErrNotDraining] or [rules.ErrNotEnabled]: the
// latter on a server that does not lead.
type Explainer interface {
	Explain(cluster.NodeID) (rules.Report, error)
	Status() ([]rules.Status, error)
}

// Access identifies callers by their tokens.
type Access interface {
	// Identify returns the identity of the token, which is empty if the request has none. ok is
	// false if the token is unknown: the answer is 403 then.
	Identify(token string) (who Identity, ok bool)
}

// Identity is the author of a request, and its rights.
type Identity struct {
	// Name is stored with the identity's changes, and is not secret.
	Name string
	// Read, Write and Node are the rights. Write includes the others. Node allows to register nodes.
	Read, Write, Node bool
}
