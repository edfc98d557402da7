package telemetry

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Sources are asked at each scrape. Each may be nil. Then its series are missing.
type Sources struct {
	// Drains returns the running drains. An error means that another server knows them. It is
	// [drainer.NodeDrainer.Status].
	Drains func() ([]rules.Status, error)
	// Raft is the server's raft; see [raft.Raft].
	Raft Raft
	// BlockingQueries is how many readers wait for a change.
	BlockingQueries func() int
	// State returns whether the server's state is in doubt: that of the other servers differs. It
	// also returns the index of the newest comparison, or zero before the first one.
	State func() (doubtful bool, compared uint64)
	// Connections counts the connections of each kind.
	Connections func() []Connections
	// Held counts the rows of the state, as the leader found them when it last collected ended
	// work. It is nil on another server. It is [server.Collection.Held].
	Held func() *collect.Held
}

// Connections are the connections of one kind, such as those to the HTTP API.
type Connections struct {
	// Kind is the kind of the connections.
	Kind string
	// Open is how many are open now.
	Open int
	// Closed is how many were idle and were closed because a bound was reached, Refused how many were
	// closed at once, both since the start.
	Closed, Refused int
}

// Raft is the part of a [raft.Raft] that a scrape asks.
type Raft interface {
	State() raft.RaftState
	LastContact() time.Time
	LastIndex() uint64
	CommitIndex() uint64
	AppliedIndex() uint64
}

var _ Raft = (*raft.Raft)(nil)

// Watch sets the sources from now on.
func (t *Telemetry) Watch(s Sources) { t.sources.Store(&s) }

// The states of a running drain.
const (
	// stateDraining: within its deadline, or without one.
	stateDraining = "draining"
	// statePastDeadline: its deadline has passed, and the servers stop what is left.
	statePastDeadline = "past_deadline"
	// statePastBound: it should have ended. A new bound always lies in the future. So the first
	// bound of the drain's revision counts.
	statePastBound = "past_bound"
)

// puller answers a scrape from the present state.
type puller struct {
	t     *Telemetry
	descs []*prometheus.Desc // all descriptions below

	mu sync.Mutex
	// seen are the drains that ran at the last scrape; guarded by mu.
	seen map[cluster.DrainID]seenDrain

	drains, waiting, left, unchanged, late   *prometheus.Desc
	leads, last, commit, applied, contact    *prometheus.Desc
	queries, certificate, rows, ended        *prometheus.Desc
	conns, connsClosed, connsRefused         *prometheus.Desc
	differs, compared                        *prometheus.Desc
	witnessMissed, witnessIndex, witnessSize *prometheus.Desc
}

func newPuller(t *Telemetry) *puller {
	p := &puller{t: t}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		d := prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
		p.descs = append(p.descs, d)
		return d
	}
	p.drains = desc("drains", "Running drains, by state; only on the leader.", "state")
	p.waiting = desc("allocs_waiting", "Allocations on draining nodes, by the reason why they are still there; only on the leader.", "reason")
	p.left = desc("allocs_left", "Allocations that have to leave draining nodes and have not stopped, by stage; only on the leader.", "stage")
	p.unchanged = desc("drain_unchanged_seconds", "Time since the number of allocations left changed, for the drains with the longest time; only on the leader.", "drain", "node", "reason")
	p.late = desc("drain_late_seconds", "Time since the deadline, for the drains that passed it, the latest first; only on the leader.", "drain", "node", "state")
	p.leads = desc("raft_leads", "1 on a server that believes it is the leader, otherwise 0.")
	p.last = desc("raft_last_index", "Index of the newest entry in this server's log.")
	p.commit = desc("raft_commit_index", "Index of the newest entry that this server knows to be committed.")
	p.applied = desc("raft_applied_index", "Index of the newest entry that this server has applied.")
	p.contact = desc("raft_last_contact_seconds", "Time since this server's last contact with the leader; 0 on the leader, missing before the first contact.")
	p.queries = desc("blocking_queries", "Blocking queries that wait for a change.")
	p.conns = desc("connections", "Open connections, by kind.", "kind")
	p.connsClosed = desc("connections_closed_total", "Idle connections that were closed because a bound was reached, by kind.", "kind")
	p.connsRefused = desc("connections_refused_total", "Connections that were closed at once because a bound was reached, by kind.", "kind")
	p.certificate = desc("certificate_expires_timestamp_seconds", "When the server's certificate expires, in seconds since 1970.")
	p.differs = desc("state_differs", "1 on a server whose state differs from that of the other servers, otherwise 0.")
	p.compared = desc("state_compared_index", "Index at which this server's state was last compared with those of the other servers.")
	p.rows = desc("state_rows", "Rows of the state, by table, at the last round that collected ended work; only on the leader.", "table")
	p.ended = desc("state_ended_rows", "Those of state_rows that have ended; only on the leader.", "table")
	p.witnessMissed = desc("witness_missed_entries_total", "Applied entries that the witness missed because its queue was full.")
	p.witnessIndex = desc("witness_index", "Index of the newest entry that the witness has judged.")
	p.witnessSize = desc("witness_size", "Drains, marks and groups that the witness remembers.")
	return p
}

// Describe sends the description of every series.
func (p *puller) Describe(to chan<- *prometheus.Desc) {
	for _, d := range p.descs {
		to <- d
	}
}

// Collect asks the sources.
func (p *puller) Collect(to chan<- prometheus.Metric) {
	now := time.Now()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(p.witnessIndex, float64(p.t.auditor.index.Load()))
	gauge(p.witnessSize, float64(p.t.auditor.size.Load()))
	to <- prometheus.MustNewConstMetric(p.witnessMissed, prometheus.CounterValue, float64(p.t.auditor.missed.Load()))

	if p.t.expires != nil {
		gauge(p.certificate, float64(p.t.expires().Unix()))
	}
	s := p.t.sources.Load()
	if s == nil {
		return
	}
	if s.BlockingQueries != nil {
		gauge(p.queries, float64(s.BlockingQueries()))
	}
	if s.Connections != nil {
		for _, c := range s.Connections() {
			gauge(p.conns, float64(c.Open), c.Kind)
			to <- prometheus.MustNewConstMetric(p.connsClosed, prometheus.CounterValue, float64(c.Closed), c.Kind)
			to <- prometheus.MustNewConstMetric(p.connsRefused, prometheus.CounterValue, float64(c.Refused), c.Kind)
		}
	}
	if s.State != nil {
		doubtful, compared := s.State()
		differs := 0.0
		if doubtful {
			differs = 1
		}
		gauge(p.differs, differs)
		gauge(p.compared, float64(compared))
	}
	if s.Held != nil {
		if held := s.Held(); held != nil {
			gauge(p.rows, float64(held.Allocs), statestore.TableAllocs)
			gauge(p.rows, float64(held.Evals), statestore.TableEvals)
			gauge(p.rows, float64(held.Jobs), statestore.TableJobs)
			gauge(p.ended, float64(held.EndedAllocs), statestore.TableAllocs)
			gauge(p.ended, float64(held.EndedEvals), statestore.TableEvals)
			gauge(p.ended, float64(held.EndedJobs), statestore.TableJobs)
		}
	}
	if s.Raft != nil {
		p.collectRaft(s.Raft, now, gauge)
	}
	if s.Drains != nil {
		if all, err := s.Drains(); err == nil { // otherwise the leader's scrape has them
			p.collectDrains(all, now, gauge)
		}
	}
}

type gauge func(d *prometheus.Desc, value float64, labels ...string)

func (p *puller) collectRaft(r Raft, now time.Time, gauge gauge) {
	gauge(p.last, float64(r.LastIndex()))
	gauge(p.commit, float64(r.CommitIndex()))
	gauge(p.applied, float64(r.AppliedIndex()))
	if r.State() == raft.Leader {
		gauge(p.leads, 1)
		gauge(p.contact, 0)
		return
	}
	gauge(p.leads, 0)
	if last := r.LastContact(); !last.IsZero() {
		gauge(p.contact, now.Sub(last).Seconds())
	}
}

func (p *puller) collectDrains(all []rules.Status, now time.Time, gauge gauge) {
	states := map[string]int{}
	seen := p.see(all, now)
	var waiting [rules.ReasonCount]int
	var left [cluster.StageCount]int
	for i := range all {
		states[seen[all[i].Drain.ID].state(all[i].Drain, now)]++
		for r, n := range all[i].Waiting {
			waiting[r] += n
		}
		for stage, n := range all[i].Left {
			left[stage] += n
		}
	}
	for _, state := range []string{stateDraining, statePastDeadline, statePastBound} {
		gauge(p.drains, float64(states[state]), state)
	}
	for r := range rules.ReasonCount {
		gauge(p.waiting, float64(waiting[r]), identifier(r.String()))
	}
	for stage := range cluster.StageCount {
		gauge(p.left, float64(left[stage]), identifier(stage.String()))
	}
	for _, d := range longest(unchanged(all, seen, now)) {
		gauge(p.unchanged, d.took.Seconds(), string(d.drain), d.node, d.label)
	}
	for _, d := range longest(late(all, seen, now)) {
		gauge(p.late, d.took.Seconds(), string(d.drain), d.node, d.label)
	}
}
