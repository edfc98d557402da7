package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// EventStreamPath is the path of the event stream, whose answer does not end by itself.
const EventStreamPath = "/v1/event/stream"

// Bounds of event streams.
const (
	// maxStreams bounds the streams of a server: each reads every changed table. One client gets at
	// most maxStreamsPerClient of them.
	maxStreams          = 64
	maxStreamsPerClient = maxStreams / 2
	// streamPause is the shortest time between two reads of one stream.
	streamPause = 250 * time.Millisecond
	// streamHeartbeat is how long a stream is silent at most.
	streamHeartbeat = 10 * time.Second
)

// streamEvents answers GET /v1/event/stream: the changes of the state, a line for each index. The
// state is all that it reads: a row that changed twice since the last read has one event. A slow
// reader thus costs no memory.
func streamEvents(q *request) error {
	selected, err := parseTopics(q.URL.Query()["topic"])
	if err != nil {
		return err
	}
	client := q.client()
	if !q.handler.streams.Take(client) {
		return failure.New(http.StatusTooManyRequests, "too many event streams")
	}
	defer q.handler.streams.Free(client)
	state, err := q.state()
	if err != nil {
		return err
	}
	s := &stream{q: q, topics: selected, since: state.Index(), last: state}
	if q.params.index > 0 {
		s.since = min(s.since, q.params.index-1)
	}
	s.rememberNodes(state)
	s.rememberJobs(state)
	q.indexHeader(max(1, state.Index()))
	q.w.Header().Set("Content-Type", "application/json")
	q.w.WriteHeader(http.StatusOK)
	s.run(state)
	return nil
}

// stream is one event stream. It belongs to the goroutine of its request.
type stream struct {
	q      *request
	topics topics
	// last is the state that was read last, and since its index, or an earlier one at first.
	last  State
	since uint64
	// nodes and jobs are those of that state: their deletion leaves nothing else behind. A map is
	// nil if its topic is not selected.
	nodes map[cluster.NodeID]*cluster.Node
	jobs  map[cluster.JobKey]*cluster.Job
}

// run writes events until the client or the server ends the stream.
func (s *stream) run(state State) {
	ctx := s.q.Context()
	for {
		if s.last.Abandoned() {
			return // a snapshot was restored, and no index names which rows it has changed: the reader must read everything again
		}
		if state != nil {
			if s.write(s.events(state)) != nil {
				return
			}
			s.last, s.since = state, state.Index()
		} else if s.q.backend.Peers.Leader() == "" || s.write([]wire.Events{{}}) != nil {
			return // a state without a leader may stay behind for ever
		}
		select {
		case <-time.After(streamPause):
		case <-ctx.Done():
			return
		}
		var err error
		if state, err = s.next(ctx); err != nil || !s.q.stillAllowed() {
			return
		}
	}
}

// next waits for a state with a change, or returns nil after a while without one.
func (s *stream) next(ctx context.Context) (changed State, err error) {
	ctx, cancel := context.WithTimeout(ctx, streamHeartbeat)
	defer cancel()
	err = s.q.readAgain(ctx, s.since, func(now State) (uint64, error) {
		changed = nil
		index := uint64(0)
		for _, t := range s.topics.tables() {
			index = max(index, now.TableIndex(t))
		}
		if index > s.since || s.last.Abandoned() {
			changed = now
			return s.since + 1, nil
		}
		return index, nil
	})
	if changed == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, nil
	}
	return changed, err
}

// write writes lines, and gives the client a minute to take them.
func (s *stream) write(lines []wire.Events) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	for _, line := range lines {
		if err := encoder.Encode(line); err != nil {
			return fmt.Errorf("encoding events: %w", err)
		}
	}
	beginAnswer(s.q.w, answerTime)
	if _, err := b.WriteTo(s.q.w); err != nil {
		return err
	}
	return http.NewResponseController(s.q.w).Flush()
}

// events returns the changes since the last state, by index, and keeps the new one for the next call.
func (s *stream) events(state State) []wire.Events {
	var all []wire.Event
	add := func(index uint64, topic, kind, key string, payload wire.EventPayload, filterKeys ...string) {
		filterKeys = slices.DeleteFunc(filterKeys, func(k string) bool { return k == "" })
		if s.topics.selects(topic, key, filterKeys) {
			all = append(all, wire.Event{Topic: topic, Type: kind, Key: key, FilterKeys: filterKeys, Index: index, Payload: payload})
		}
	}
	changed := func(topic, table string) bool { return s.topics[topic] != nil && state.TableIndex(table) > s.since }
	if changed(topicNode, TableNodes) {
		s.nodeEvents(state, add)
	}
	if changed(topicJob, TableJobs) {
		s.jobEvents(state, add)
	}
	if changed(topicEval, TableEvals) {
		for e := range state.Evals() {
			if e.ModifyIndex > s.since && s.q.params.within(e.Namespace) {
				add(e.ModifyIndex, topicEval, "EvaluationUpdated", string(e.ID), wire.EventPayload{Evaluation: wire.NewEvaluation(e)}, string(e.JobID), string(e.NodeID))
			}
		}
	}
	if changed(topicAlloc, TableAllocs) {
		for a := range state.Allocs() {
			if a.ModifyIndex > s.since && s.q.params.within(a.Namespace) {
				w := wire.NewAllocation(a, s.q.options.Region)
				w.Job = nil
				add(a.ModifyIndex, topicAlloc, allocEvent(a), string(a.ID), wire.EventPayload{Allocation: w}, string(a.JobID), string(a.NodeID))
			}
		}
	}
	return byIndex(all)
}

// addEvent adds an event if the stream selects it.
type addEvent func(index uint64, topic, kind, key string, payload wire.EventPayload, filterKeys ...string)

// allocEvent is the type of an allocation's newest change.
func allocEvent(a *cluster.Allocation) string {
	switch {
	case a.ModifyIndex > a.AllocModifyIndex:
		return "AllocationUpdated" // by its client
	case a.ClientTerminal() && a.DataOut != nil && a.DataOut.State.Ended():
		return "AllocationUpdated" // by the client of its replacement
	case a.Marked() && !a.ServerTerminal():
		return "AllocationUpdateDesiredStatus"
	}
	return "PlanResult"
}

// nodeEvents adds an event for each new entry in a node's own list of events, or one for a change
// without an entry.
func (s *stream) nodeEvents(state State, add addEvent) {
	for n := range state.Nodes() {
		if n.ModifyIndex <= s.since {
			continue
		}
		w := wire.EventPayload{Node: wire.NewNode(n)}
		listed := false
		for _, e := range n.Events {
			if e.CreateIndex > s.since {
				listed = true
				add(e.CreateIndex, topicNode, nodeEvent(e), string(n.ID), wire.EventPayload{Node: wire.NewNode(nodeAt(state, n, e))})
			}
		}
		switch {
		case listed:
		case n.Draining() && n.CreateIndex <= s.since:
			add(n.ModifyIndex, topicNode, "NodeDrain", string(n.ID), w) // it counts its marks
		default:
			add(n.ModifyIndex, topicNode, "NodeRegistration", string(n.ID), w)
		}
	}
	for id, before := range s.nodes {
		if state.Node(id) == nil {
			add(state.TableIndex(TableNodes), topicNode, "NodeDeregistration", string(id), wire.EventPayload{Node: wire.NewNode(before)})
		}
	}
	s.rememberNodes(state)
}

// nodeAt returns the node with the drain, the eligibility and the events that it had after an entry in its own
// list. The servers keep no older rows, but the records of drains. Everything else is as in the row.
func nodeAt(s State, n *cluster.Node, e cluster.NodeEvent) *cluster.Node {
	if e.CreateIndex >= n.ModifyIndex {
		return n
	}
	then := n.Copy()
	then.ModifyIndex = e.CreateIndex
	then.Events = slices.DeleteFunc(then.Events, func(o cluster.NodeEvent) bool { return o.CreateIndex > e.CreateIndex })
	if then.Drain != nil && then.Drain.CreateIndex > e.CreateIndex {
		then.Drain = nil
	}
	for d := range s.DrainsByNode(n.ID) {
		if d.CreateIndex <= e.CreateIndex && e.CreateIndex < d.EndIndex {
			then.Drain = d
		}
	}
	switch {
	case then.Draining(), e.Message == cluster.EventNodeIneligible, e.Message == cluster.EventDrainComplete:
		then.SchedulingEligibility = cluster.NodeIneligible
	case e.Message == cluster.EventNodeEligible:
		then.SchedulingEligibility = cluster.NodeEligible
	}
	return then
}

// nodeEvent is the type of an entry in a node's list of events.
func nodeEvent(e cluster.NodeEvent) string {
	switch {
	case e.Subsystem == cluster.SubsystemDrain:
		return "NodeDrain"
	case strings.HasPrefix(e.Message, "Node marked as "):
		return "NodeEligibility"
	}
	return "NodeStreamEvent"
}

func (s *stream) jobEvents(state State, add addEvent) {
	for j := range state.Jobs() {
		if j.ModifyIndex > s.since && s.q.params.within(j.Namespace) {
			kind := "JobRegistered"
			if j.Stop {
				kind = "JobDeregistered"
			}
			add(j.ModifyIndex, topicJob, kind, string(j.ID), wire.EventPayload{Job: summarize(state, j).job(s.q.options.Region)})
		}
	}
	for key, before := range s.jobs {
		if state.Job(key) == nil && s.q.params.within(key.Namespace) {
			add(state.TableIndex(TableJobs), topicJob, "JobDeregistered", string(key.ID), wire.EventPayload{Job: wire.NewJob(before, s.q.options.Region), Deleted: true})
		}
	}
	s.rememberJobs(state)
}

func (s *stream) rememberNodes(state State) {
	if s.topics[topicNode] != nil {
		s.nodes = rowsByKey(state.Nodes(), func(n *cluster.Node) cluster.NodeID { return n.ID })
	}
}

func (s *stream) rememberJobs(state State) {
	if s.topics[topicJob] != nil {
		s.jobs = rowsByKey(state.Jobs(), (*cluster.Job).Key)
	}
}

func rowsByKey[K comparable, Row any](rows iter.Seq[Row], key func(Row) K) map[K]Row {
	all := map[K]Row{}
	for row := range rows {
		all[key(row)] = row
	}
	return all
}

// byIndex sorts events and joins those of an index into a line.
func byIndex(events []wire.Event) (lines []wire.Events) {
	slices.SortStableFunc(events, func(a, b wire.Event) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Key, b.Key))
	})
	for _, e := range events {
		if last := len(lines) - 1; last < 0 || lines[last].Index != e.Index {
			lines = append(lines, wire.Events{Index: e.Index})
		}
		lines[len(lines)-1].Events = append(lines[len(lines)-1].Events, e)
	}
	return lines
}

// The topics of events.
const (
	topicNode  = "Node"
	topicAlloc = "Allocation"
	topicEval  = "Evaluation"
	topicJob   = "Job"
)

// topics are the keys that an event stream selects, by topic. A topic that is not selected is missing.
type topics map[string][]string

// anyTopic and anyKey stand for all.
const (
	anyTopic = "*"
	anyKey   = "*"
)

// parseTopics reads values like "Node", "Job:web" and "*"; none is all. Topics of the reference that
// this system does not have are accepted, and have no events.
func parseTopics(values []string) (topics, error) {
	if len(values) == 0 {
		values = []string{anyTopic}
	}
	selected := topics{}
	for _, value := range values {
		topic, key, hasKey := strings.Cut(value, ":")
		if !hasKey {
			key = anyKey
		}
		switch topic {
		case anyTopic:
			for _, topic := range []string{topicNode, topicAlloc, topicEval, topicJob} {
				selected[topic] = append(selected[topic], key)
			}
		case topicNode, topicAlloc, topicEval, topicJob:
			selected[topic] = append(selected[topic], key)
		case "Deployment", "NodePool", "Service":
		default:
			return nil, failure.Bad("unknown topic %q", topic)
		}
	}
	return selected, nil
}

// selects reports whether the stream selects an event with these keys.
func (t topics) selects(topic, key string, filterKeys []string) bool {
	return slices.ContainsFunc(t[topic], func(selected string) bool {
		return selected == anyKey || selected == key || slices.Contains(filterKeys, selected)
	})
}

// tables are the tables whose changes are events of the selected topics.
func (t topics) tables() (names []string) {
	for _, one := range []struct{ topic, table string }{
		{topicNode, TableNodes}, {topicAlloc, TableAllocs}, {topicEval, TableEvals}, {topicJob, TableJobs},
	} {
		if t[one.topic] != nil {
			names = append(names, one.table)
		}
	}
	return names
}
