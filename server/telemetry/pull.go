package telemetry

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/datamove"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Sources are read at each scrape. Each may be nil. Then its series are missing.
type Sources struct {
	// Drains returns the running drains. An error means that another server has them. It is
	// [drainer.NodeDrainer.Status].
	Drains func() ([]rules.Status, error)
	// Unconfirmed returns the records of ended drains that count unconfirmed allocations, oldest first.
	// leads is false on a server that does not lead: the leader has them.
	Unconfirmed func() (records []*cluster.Drain, leads bool)
	// PauseOfAll returns the pause of all drains, or nil. leads is false on a server that does not lead: the
	// leader has it.
	PauseOfAll func() (all *cluster.DrainPause, leads bool)
	// Raft is the server's raft; see [raft.Raft].
	Raft Raft
	// BlockingQueries is how many readers wait for a change.
	BlockingQueries func() int
	// DataCopies counts the copies of the data of ephemeral disks through the server.
	DataCopies func() datamove.Counts
	// State returns whether the server's state is in doubt: that of the other servers differs. It
	// also returns the index of the newest comparison, or zero before the first one.
	State func() (doubtful bool, compared uint64)
	// Connections counts the connections of each kind.
	Connections func() []Connections
	// Held counts the rows of the state, as the leader found them when it last collected ended
	// work. It is nil on another server. It is [server.Server.HeldRows].
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

// Raft is the part of a [raft.Raft] that a scrape reads.
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
	// stateDraining: within its deadline, without one, or paused.
	stateDraining = "draining"
	// statePastDeadline: its deadline has passed, and the servers stop what is left.
	statePastDeadline = "past_deadline"
	// statePastBound: it should have ended. A new bound always lies in the future. So the first
	// bound of the drain's revision counts.
	statePastBound = "past_bound"
)

// puller answers a scrape from the present state. A series is declared where it is measured.
type puller struct {
	t *Telemetry

	mu sync.Mutex
	// last are the drains that ran at the last scrape; guarded by mu.
	last map[cluster.DrainID]observedDrain
}

// Describe sends nothing: the registry checks the series when it collects them.
func (p *puller) Describe(chan<- *prometheus.Desc) {}

// scrape receives the series of one scrape.
type scrape struct {
	to  chan<- prometheus.Metric
	now time.Time
}

// labels are pairs of a name and a value.
type labels []string

func (s scrape) send(kind prometheus.ValueType, name, help string, value float64, l labels) {
	var names, values []string
	for i := 0; i < len(l); i += 2 {
		names, values = append(names, l[i]), append(values, l[i+1])
	}
	s.to <- prometheus.MustNewConstMetric(prometheus.NewDesc(namespace+"_"+name, help, names, nil), kind, value, values...)
}

func (s scrape) gauge(name, help string, value float64, l ...string) {
	s.send(prometheus.GaugeValue, name, help, value, l)
}

func (s scrape) counter(name, help string, value float64, l ...string) {
	s.send(prometheus.CounterValue, name, help, value, l)
}

// Collect reads the sources.
func (p *puller) Collect(to chan<- prometheus.Metric) {
	out := scrape{to: to, now: time.Now()}
	a := p.t.auditor
	out.counter("witness_missed_entries_total", "Applied entries that the witness missed because its queue was full.", float64(a.missed.Load()))
	out.gauge("witness_index", "Index of the newest entry that the witness has judged.", float64(a.index.Load()))
	out.gauge("witness_size", "Drains, marks and groups that the witness remembers.", float64(a.size.Load()))
	if p.t.expires != nil {
		out.gauge("certificate_expires_timestamp_seconds", "When the server's certificate expires, in seconds since 1970.", float64(p.t.expires().Unix()))
	}
	s := p.t.sources.Load()
	if s == nil {
		return
	}
	if s.BlockingQueries != nil {
		out.gauge("blocking_queries", "Blocking queries that wait for a change.", float64(s.BlockingQueries()))
	}
	if s.DataCopies != nil {
		c := s.DataCopies()
		out.gauge("data_copies", "Copies of the data of ephemeral disks that run through this server.", float64(c.Running))
		out.gauge("data_copies_waiting", "Requests for copies of data that wait for their turn on this server.", float64(c.Waiting))
		out.counter("data_copied_bytes_total", "Bytes of ephemeral disks that this server has passed on.", float64(c.Bytes))
	}
	if s.Connections != nil {
		for _, c := range s.Connections() {
			out.gauge("connections", "Open connections, by kind.", float64(c.Open), "kind", c.Kind)
			out.counter("connections_closed_total", "Idle connections that were closed because a bound was reached, by kind.", float64(c.Closed), "kind", c.Kind)
			out.counter("connections_refused_total", "Connections that were closed at once because a bound was reached, by kind.", float64(c.Refused), "kind", c.Kind)
		}
	}
	if s.State != nil {
		doubtful, compared := s.State()
		out.gauge("state_differs", "1 on a server whose state differs from that of the other servers, otherwise 0.", oneIf(doubtful))
		out.gauge("state_compared_index", "Index at which this server's state was last compared with those of the other servers.", float64(compared))
	}
	if s.Held != nil {
		out.held(s.Held())
	}
	if s.Raft != nil {
		out.raft(s.Raft)
	}
	if s.Unconfirmed != nil {
		if records, leads := s.Unconfirmed(); leads {
			out.unconfirmed(records)
		}
	}
	if s.PauseOfAll != nil {
		if all, leads := s.PauseOfAll(); leads && all != nil {
			out.gauge("drains_paused_timestamp_seconds", "Since when all drains are paused, in seconds since 1970; missing without a pause of all; only on the leader.", float64(all.At.Unix()))
		}
	}
	if s.Drains != nil {
		if all, err := s.Drains(); err == nil { // otherwise the leader's scrape has them
			out.drains(all, p.observe(all, out.now))
		}
	}
}

// unconfirmed sends the counts of the records, oldest first. It names the newest.
func (s scrape) unconfirmed(records []*cluster.Drain) {
	s.gauge("drains_unconfirmed", "Records of ended drains that count unconfirmed allocations; only on the leader.", float64(len(records)))
	for _, d := range records[max(0, len(records)-MaxNamedDrains):] {
		s.gauge("drain_unconfirmed_allocations", "Allocations of an ended drain whose end nothing confirms, for the drains that ended last; only on the leader.",
			float64(d.CountUnconfirmed()), "drain", string(d.ID), "node", d.NodeName)
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// held sends the counts of the rows; nil sends nothing.
func (s scrape) held(held *collect.Held) {
	if held == nil {
		return
	}
	for _, t := range []struct {
		table       string
		rows, ended int
	}{
		{statestore.TableAllocs, held.Allocs, held.EndedAllocs},
		{statestore.TableEvals, held.Evals, held.EndedEvals},
		{statestore.TableJobs, held.Jobs, held.EndedJobs},
	} {
		s.gauge("state_rows", "Rows of the state, by table, at the last round that collected ended work; only on the leader.", float64(t.rows), "table", t.table)
		s.gauge("state_ended_rows", "Those of state_rows that have ended; only on the leader.", float64(t.ended), "table", t.table)
	}
}

func (s scrape) raft(r Raft) {
	leads := r.State() == raft.Leader
	s.gauge("raft_leads", "1 on a server whose raft state is leader, otherwise 0.", oneIf(leads))
	s.gauge("raft_last_index", "Index of the newest entry in this server's log.", float64(r.LastIndex()))
	s.gauge("raft_commit_index", "Index of the newest entry that is committed, as far as this server has received it.", float64(r.CommitIndex()))
	s.gauge("raft_applied_index", "Index of the newest entry that this server has applied.", float64(r.AppliedIndex()))
	last := r.LastContact()
	if leads {
		last = s.now
	}
	if !last.IsZero() {
		s.gauge("raft_last_contact_seconds", "Time since this server's last contact with the leader; 0 on the leader, missing before the first contact.", s.now.Sub(last).Seconds())
	}
}

func (s scrape) drains(all []rules.Status, observed map[cluster.DrainID]observedDrain) {
	states, causes := map[string]int{}, map[string]int{}
	var waiting [rules.ReasonCount]int
	var left [cluster.StageCount]int
	for i := range all {
		states[observed[all[i].Drain.ID].state(&all[i], s.now)]++
		causes[pauseCause(&all[i])]++
		for r, n := range all[i].Waiting {
			waiting[r] += n
		}
		for stage, n := range all[i].Left {
			left[stage] += n
		}
	}
	for _, state := range []string{stateDraining, statePastDeadline, statePastBound} {
		s.gauge("drains", "Running drains, by state; only on the leader.", float64(states[state]), "state", state)
	}
	for _, cause := range []string{pausedItself, pausedWithAll} {
		s.gauge("drains_paused", "Paused drains, by cause; only on the leader.", float64(causes[cause]), "cause", cause)
	}
	for r := range rules.ReasonCount {
		s.gauge("allocs_waiting", "Allocations on draining nodes, by the reason why they are still there; only on the leader.", float64(waiting[r]), "reason", identifier(r.String()))
	}
	for stage := range cluster.StageCount {
		s.gauge("allocs_left", "Allocations that have to leave draining nodes and have not stopped, by stage; only on the leader.", float64(left[stage]), "stage", identifier(stage.String()))
	}
	for _, d := range longest(unchanged(all, observed, s.now)) {
		s.gauge("drain_unchanged_seconds", "Time since the number of allocations left changed, for the drains with the longest time; only on the leader. nodedrain node explain NODE names what causes the reason.", d.took.Seconds(),
			"drain", string(d.drain), "node", d.node, "reason", d.label)
	}
	for _, d := range longest(timeLeft(all, s.now)) {
		s.gauge("drain_time_left_seconds", "Estimated time until the drain ends, for the drains that have an estimate and take longest; only on the leader.", d.took.Seconds(),
			"drain", string(d.drain), "node", d.node)
	}
	for _, d := range longest(late(all, observed, s.now)) {
		s.gauge("drain_late_seconds", "Time since the deadline, for the drains that passed it, the latest first; only on the leader.", d.took.Seconds(),
			"drain", string(d.drain), "node", d.node, "state", d.label)
	}
	for _, d := range longest(paused(all, s.now)) {
		s.gauge("drain_paused_seconds", "Time since the drain was paused, for the drains that are paused longest, by cause; only on the leader.", d.took.Seconds(),
			"drain", string(d.drain), "node", d.node, "cause", d.label)
	}
}
