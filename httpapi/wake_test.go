package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// sleepers are waiting readers of one state: one for each route that waits for an index and each thing
// that the route can name. They are judged at each entry.
type sleepers struct {
	*fixture
	ctx     context.Context
	handler http.Handler
	all     []*sleeper
	entries map[string]bool
}

// sleeper reads one path again and again, with the index of its last answer.
type sleeper struct {
	route, path string
	last        answer
	waiting     *reader
	changed     bool
}

// neverChange are the routes whose answers are equal in every state, with the reason.
var neverChange = map[string]string{
	"GET /v1/job/{id}/submission":           "the source of a job is not stored",
	"GET /v1/job/{id}/deployment":           "jobs have no deployments",
	"GET /v1/job/{id}/deployments":          "jobs have no deployments",
	"GET /v1/deployments":                   "jobs have no deployments",
	"GET /v1/operator/raft/configuration":   "it is not in the state",
	"GET /v1/client/allocation/{id}/checks": "the client has them, and these tasks have none",
	"GET /v1/client/{id}/session":           "it is no query",
	"GET " + httpapi.SnapshotPath:           "it is a file",
}

// ofPath returns the ids that a path can name.
func ofPath(path string) []string {
	switch {
	case path == "/v1/node/pools", !strings.Contains(path, "{"):
		return []string{""}
	case strings.Contains(path, "/node/"), strings.Contains(path, "/client/{id}"):
		return []string{uuid('a', 1), uuid('a', 2), uuid('a', 9)}
	case strings.Contains(path, "/job/"):
		return []string{"web", "sum", "none"}
	case strings.Contains(path, "/allocation/"):
		return []string{uuid('b', 1), uuid('b', 2), uuid('b', 9)}
	case strings.Contains(path, "/evaluation/"):
		return []string{uuid('c', 1), uuid('c', 2), uuid('c', 9)}
	case strings.Contains(path, "/service/"):
		return []string{"web", "at-n1", "none"}
	case strings.Contains(path, "/drain/"):
		return []string{"d1", "d4", "none"}
	case strings.Contains(path, "/volume/"):
		return []string{"data", "none"}
	case strings.Contains(path, "/plugin/"):
		return []string{"disks", "none"}
	}
	return nil
}

// variants are parameters that change what a route reads.
var variants = map[string][]string{
	"GET /v1/nodes":                 {"?resources=true"},
	"GET /v1/allocations":           {"?resources=true"},
	"GET /v1/volumes":               {"?node_id=" + uuid('a', 1), "?plugin_id=disks", "?type=csi"},
	"GET /v1/node/{id}/volumes":     {"?volume=data"},
	"GET /v1/node/{id}/allocations": {"?changes="},
	"GET /v1/evaluation/{id}":       {"?related=true"},
	"GET /v1/job/{id}/allocations":  {"?all=true"},
}

func newSleepers(ctx context.Context, w *fixture, h http.Handler) *sleepers {
	s := &sleepers{fixture: w, ctx: ctx, handler: h, entries: map[string]bool{}}
	for _, route := range httpapi.BlockingRoutes() {
		method, path, _ := strings.Cut(route, " ")
		if method != http.MethodGet || route == "GET /v1/client/{id}/session" {
			continue
		}
		ids := ofPath(path)
		must.Positive(w, len(ids), must.Sprint("no thing for ", route))
		for _, id := range ids {
			for _, parameters := range append([]string{""}, variants[route]...) {
				s.all = append(s.all, &sleeper{route: route, path: strings.NewReplacer("{id}", id, "{name}", id).Replace(path) + parameters})
			}
		}
	}
	for _, one := range s.all {
		r := s.readsUntil(ctx, h, one.path)
		must.False(w, r.waits())
		if r.answer.header.Get("X-Nomad-Index") == "" {
			must.MapContainsKey(w, neverChange, one.route, must.Sprint("an answer without an index: ", r.answer.body))
			continue
		}
		s.sleep(one)
	}
	s.all = slices.DeleteFunc(s.all, func(one *sleeper) bool { return one.waiting == nil })
	w.Propose = func(m shims.Message) shims.Response {
		w.mu.Lock()
		response := w.Apply(m)
		w.mu.Unlock()
		s.entries[strings.TrimPrefix(fmt.Sprintf("%T", m), "*shims.")] = true
		s.judge(m)
		return response
	}
	return s
}

// sleep reads the path, and lets a reader wait at the index of the answer.
func (s *sleepers) sleep(one *sleeper) {
	s.Helper()
	r := s.readsUntil(s.ctx, s.handler, one.path)
	must.False(s, r.waits(), must.Sprint(one.path))
	one.last = r.answer
	one.waiting = s.readsUntil(s.ctx, s.handler, at(one.path, one.last.index(s)))
}

// ofTheAnswer are fields of answers that do not wake readers, with the reason.
var ofTheAnswer = map[string]string{
	"Index":   "the index of the state in a list of changes",
	"Metrics": "why nodes are unsuited at the time of the answer; the reference has those of the placement",
}

// subject is an answer without the fields that do not wake readers.
func (a answer) subject() string {
	var value any
	if a.code != http.StatusOK || json.Unmarshal([]byte(a.body), &value) != nil {
		return a.body
	}
	without(value)
	text, _ := json.Marshal(value) // of what was unmarshalled
	return string(text)
}

func without(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if ofTheAnswer[key] != "" {
				delete(value, key)
			}
			without(field)
		}
	case []any:
		for _, element := range value {
			without(element)
		}
	}
}

// deletes reports whether an entry deletes rows. A reader that comes after it receives a list without an
// older row only with the next change: no row has the index of the deletion.
func deletes(m shims.Message) bool {
	_, collects := m.(*shims.Collect)
	stop, stops := m.(*shims.JobDeregister)
	return collects || stops && stop.Purge
}

// difference shows where two answers begin to differ.
func difference(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	part := func(text string) string { return text[max(0, n-40):min(len(text), n+60)] }
	return fmt.Sprintf("%q became %q", part(a), part(b))
}

// judge compares what the readers received with what they read now.
func (s *sleepers) judge(m shims.Message) {
	s.Helper()
	synctest.Wait()
	for _, one := range s.all {
		now := s.readsUntil(s.ctx, s.handler, one.path).answer
		if before, after := one.last.subject(), now.subject(); now.code != one.last.code || before != after {
			one.changed = true
			if one.waiting.waits() {
				s.Errorf("%T changes the answer of %s, and its reader waits: %s", m, one.path, difference(before, after))
			}
			if late := s.readsUntil(s.ctx, s.handler, at(one.path, one.last.index(s))); late.waits() && !deletes(m) {
				s.Errorf("%T changes the answer of %s, and a reader that comes later waits", m, one.path)
			}
			s.sleep(one)
			continue
		}
		if !one.waiting.waits() {
			s.sleep(one)
		}
	}
}

// A change of any row that an answer contains or is computed from wakes the readers of the answer, on
// every route that waits for an index. Once a change of a volume alone did not wake the node that
// mounts it.
//
//race:skip one request after the other
func TestBlocking_everyRoute(t *testing.T) {
	t.Parallel()
	o := httpapi.Options{MaxBlockingPerClient: 8192, MaxWait: 100 * time.Hour}
	bubble(t, o, func(t *testing.T, w *fixture, h http.Handler) {
		ctx, leave := context.WithCancel(t.Context())
		s := newSleepers(ctx, w, h)
		s.play()
		leave()
		synctest.Wait()
		quiet := map[string]bool{}
		for _, one := range s.all {
			quiet[one.route] = true
		}
		for _, one := range s.all {
			if one.changed {
				delete(quiet, one.route)
			}
		}
		for route := range quiet {
			must.MapContainsKey(t, neverChange, route, must.Sprint("no entry changes the answer"))
		}
		for _, kind := range []string{
			"AllocClientUpdate", "AllocStop", "AllocUpdateDesiredTransition", "ApplyPlan", "ClaimUpdate", "Collect", "ConfirmDrain", "EvalUpdate",
			"JobDeregister", "JobRegister", "NodeDeregister", "NodeRegister", "NodeUpdateDrain", "NodeUpdateEligibility", "NodeUpdateStatus",
			"NodesDrainComplete", "PauseDrains", "VolumeDeregister", "VolumeDetach", "VolumeRegister",
		} {
			must.True(t, s.entries[kind], must.Sprint(kind))
		}
	})
}

// play writes entries of all kinds, each of which changes as few rows as possible.
func (s *sleepers) play() {
	s.Helper()
	s.nodes(2)
	pooled := s.State().Node(nodeID(1)).Copy()
	pooled.NodePool = "fast"
	s.must(&shims.NodeRegister{At: s.Now(), Node: pooled})
	s.nodes(1)
	other := clustertest.Job("web", cluster.JobService, 1)
	other.Namespace = "other"
	s.Job(other)
	s.playVolumes()
	s.playDrain()
	for n := range 2 {
		s.must(&shims.NodeUpdateEligibility{At: s.Now(), Node: nodeID(n + 1), Eligibility: cluster.NodeEligible})
	}
	s.playLoss()
	s.playEnds()
}

func (s *sleepers) volume(name string) {
	s.Helper()
	s.must(&shims.VolumeRegister{At: s.Now(), Volume: &cluster.Volume{
		Namespace: "default", ID: "data", Name: name, ExternalID: "vol-1", Plugin: "disks",
		Capabilities: []cluster.VolumeCapability{{Access: cluster.MultiNodeMultiWriter, Attachment: cluster.AttachFileSystem}},
	}})
}

func (s *sleepers) claim(n int, cause cluster.ClaimCause, values map[string]string) {
	s.Helper()
	node := s.State().Alloc(allocID(n)).NodeID
	s.must(&shims.ClaimUpdate{ClaimUpdate: cluster.ClaimUpdate{At: s.Now(), Changes: []cluster.ClaimChange{{
		Claim: cluster.ClaimKey{Volume: dataKey, Alloc: allocID(n)}, Node: node, Cause: cause, PublishContext: values,
	}}}})
}

// playVolumes changes plugins, volumes and claims, each alone.
func (s *sleepers) playVolumes() {
	s.Helper()
	s.volume("name 1")
	pluginNode(s.fixture, 1, "")
	pluginNode(s.fixture, 2, "")
	web := clustertest.Job("web", cluster.JobService, 2)
	web.Datacenters, web.TaskGroups[0].Tasks[0].Name = []string{"dc1"}, "main"
	web.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "d", Type: cluster.VolumeCSI, Source: "data", Capability: cluster.VolumeCapability{
		Access: cluster.MultiNodeMultiWriter, Attachment: cluster.AttachFileSystem,
	}}}
	check := cluster.ServiceCheck{Name: "up", Type: cluster.CheckTCP, Interval: time.Second, Timeout: time.Second}
	web.TaskGroups[0].Services = []cluster.Service{
		{Name: "web", PortLabel: "80", Address: "web.example", Checks: []cluster.ServiceCheck{check}},
		{Name: "at-${node.unique.name}", Tags: []string{"${meta.rack}"}, Address: "web.example"},
	}
	job := s.Job(web)
	s.place(1, job, nodeID(1))
	s.volume("name 2")
	s.claim(1, cluster.CauseAttached, map[string]string{"device": "/dev/sdb"})
	s.place(2, job, nodeID(2))
	s.volume("name 3")
	pluginNode(s.fixture, 2, allocID(9))
	s.must(&shims.VolumeDetach{At: s.Now(), Volume: dataKey, Node: nodeID(2), Force: true})
	s.claim(2, cluster.CauseDetached, nil)
	s.report(2, cluster.ClientComplete)
	s.place(6, job, nodeID(2))
}

// playDrain drains the first node, and cancels a drain of the second.
func (s *sleepers) playDrain() {
	s.Helper()
	s.drain(nodeID(2), cluster.DrainSpec{Deadline: time.Hour})
	s.drain(nodeID(2), cluster.DrainSpec{Deadline: 2 * time.Hour})
	s.playPauses()
	s.Drain(nodeID(2), nil)
	s.drain(nodeID(1), cluster.DrainSpec{})
	s.mark(1, cluster.MarkPaced)
	s.stop(1)
	s.must(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{{
		Alloc: allocID(1), Node: nodeID(1), ClientStatus: cluster.ClientComplete, At: s.Now(),
		VolumeHolds: &cluster.VolumeHolds{Volumes: []cluster.VolumeHold{{Namespace: "default", Volume: "data", Alloc: allocID(1), Reason: "the mount is busy"}}},
	}}})
	s.claim(1, cluster.CauseNode, nil)
	s.claim(1, cluster.CauseDetached, nil)
	s.end(nodeID(1))
}

// playPauses pauses the drain of the second node, all drains, and the drain of the second node under the pause of all.
func (s *sleepers) playPauses() {
	s.Helper()
	for _, u := range []cluster.DrainPauseUpdate{
		{Node: nodeID(2), Pause: true}, {Node: nodeID(2)}, {Pause: true}, {}, {Pause: true}, {Node: nodeID(2), Pause: true}, {}, {Node: nodeID(2)},
	} {
		u.At, u.By = s.Now(), "operator"
		s.must(&shims.PauseDrains{DrainPauseUpdate: u})
	}
}

// playLoss loses the second node with an allocation that a drain counts as unconfirmed.
func (s *sleepers) playLoss() {
	s.Helper()
	sum := s.job("sum", cluster.JobService, 3)
	s.place(3, sum, nodeID(2))
	s.place(4, sum, nodeID(2))
	s.must(&shims.AllocStop{At: s.Now(), Alloc: allocID(4)})
	s.drain(nodeID(2), cluster.DrainSpec{})
	s.must(&shims.NodeUpdateStatus{At: s.Now(), Node: nodeID(2), Status: cluster.NodeDown})
	var stops []cluster.PlanStop
	for _, n := range []int{3, 4, 6} {
		stops = append(stops, cluster.PlanStop{Alloc: allocID(n), Lost: true, Description: cluster.DescLost})
	}
	s.plan(stops)
	s.end(nodeID(2))
	for d := range s.State().Drains() {
		if d.Unconfirmed != nil && d.Unconfirmed.Count > 0 {
			s.must(&shims.ConfirmDrain{At: s.Now(), Drain: d.ID, By: "operator"})
		}
	}
	s.must(&shims.NodeUpdateStatus{At: s.Now(), Node: nodeID(2), Status: cluster.NodeReady})
	pluginNode(s.fixture, 2, allocID(9))
}

// playEnds ends and deletes everything.
func (s *sleepers) playEnds() {
	s.Helper()
	s.place(5, s.job("sum", cluster.JobService, 4), nodeID(1))
	for n := range 5 {
		s.report(n+1, cluster.ClientComplete)
	}
	sum := cluster.JobKey{Namespace: "default", ID: "sum"}
	s.must(&shims.JobDeregister{Job: sum})
	later := s.Now().Add(100 * time.Hour)
	before := collect.Before{Allocs: later, Evals: later, Jobs: later}
	for a := range s.State().Allocs() {
		s.must(&shims.Collect{At: later, Request: collect.Request{Before: before, Rows: collect.Rows{Allocs: []cluster.AllocID{a.ID}}}})
	}
	for e := range s.State().Evals() {
		s.must(&shims.Collect{At: later, Request: collect.Request{Before: before, Rows: collect.Rows{Evals: []cluster.EvalID{e.ID}}}})
	}
	s.must(&shims.JobDeregister{Job: sum, Purge: true})
	s.must(&shims.JobDeregister{Job: cluster.JobKey{Namespace: "default", ID: "web"}, Purge: true})
	s.must(&shims.VolumeDeregister{Volume: dataKey, Force: true})
	s.must(&shims.NodeDeregister{At: s.Now(), Nodes: []cluster.NodeID{nodeID(2)}})
	s.must(&shims.NodeDeregister{At: s.Now(), Nodes: []cluster.NodeID{nodeID(1)}})
}
