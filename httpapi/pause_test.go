package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// pausePath is the path of the pause of the n-th node's drain, and resumePath that of its resume.
func pausePath(n int) string  { return "/v1/node/" + uuid('a', n) + "/drain/pause" }
func resumePath(n int) string { return "/v1/node/" + uuid('a', n) + "/drain/resume" }

const (
	pauseAllPath  = "/v1/drains/pause"
	resumeAllPath = "/v1/drains/resume"
)

// The answers to pauses and resumes, one after the other. The first node has a drain with a deadline of an hour, the
// second a forced one, the third none.
func TestPauseDrains(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(3)
	at := noon
	w.Now = func() time.Time { return at }
	web := w.job("web", cluster.JobService, 2)
	w.place(1, web, nodeID(1))
	w.place(2, web, nodeID(2))
	w.drain(nodeID(1), cluster.DrainSpec{Deadline: time.Hour})
	w.mark(1, cluster.MarkPaced)
	w.drain(nodeID(2), cluster.DrainSpec{Deadline: -1})
	url := w.serveAs(guarded(w), httpapi.Options{}).URL
	const writer, reader = "writer-token", "reader-token"
	minute := func(n int) wire.Time { return wire.NewTime(noon.Add(time.Duration(n) * time.Minute)) }
	one := func(deadline int) []wire.PausedDrain {
		return []wire.PausedDrain{{Drain: "d1", Node: uuid('a', 1), Name: "n1", ForceDeadline: minute(deadline), Stopping: 1}}
	}
	none, all := []wire.SkippedDrain{}, &wire.DrainPause{At: minute(30), By: "ops"}
	forced := []wire.SkippedDrain{{Drain: "d2", Node: uuid('a', 2), Name: "n2", Why: "the drain is forced"}}
	for _, step := range []struct {
		after       int // minutes after noon
		path        string
		want        wire.DrainPauseResponse
		since       wire.Time
		by, journal string
	}{
		{10, resumePath(1), wire.DrainPauseResponse{Drains: one(60), Skipped: none}, wire.Time{}, "", ""},
		{10, pausePath(1), wire.DrainPauseResponse{Changed: true, Drains: one(60), Skipped: none}, minute(10), "drain", "paused"},
		{15, pausePath(1), wire.DrainPauseResponse{Drains: one(60), Skipped: none}, minute(10), "drain", "paused"},
		{20, resumePath(1), wire.DrainPauseResponse{Changed: true, Drains: one(70), Skipped: none}, wire.Time{}, "", "resumed"},
		{30, pauseAllPath, wire.DrainPauseResponse{Changed: true, All: all, Drains: one(70), Skipped: forced}, minute(30), "all", "resumed"},
		{31, pauseAllPath, wire.DrainPauseResponse{All: all, Drains: one(70), Skipped: forced}, minute(30), "all", "resumed"},
		{35, resumePath(1), wire.DrainPauseResponse{All: all, Drains: one(70), Skipped: none}, minute(30), "all", "resumed"},
		{40, pausePath(1), wire.DrainPauseResponse{Changed: true, All: all, Drains: one(70), Skipped: none}, minute(30), "drain and all", "paused"},
		{50, resumeAllPath, wire.DrainPauseResponse{Changed: true, Drains: []wire.PausedDrain{}, Skipped: none}, minute(30), "drain", "paused"},
		{55, resumeAllPath, wire.DrainPauseResponse{Drains: []wire.PausedDrain{}, Skipped: none}, minute(30), "drain", "paused"},
		{60, resumePath(1), wire.DrainPauseResponse{Changed: true, Drains: one(100), Skipped: none}, wire.Time{}, "", "resumed"},
		{70, pauseAllPath, wire.DrainPauseResponse{Changed: true, All: &wire.DrainPause{At: minute(70), By: "ops"}, Drains: one(100), Skipped: forced}, minute(70), "all", "resumed"},
		{80, resumeAllPath, wire.DrainPauseResponse{Changed: true, Drains: one(110), Skipped: none}, wire.Time{}, "", "resumed"},
	} {
		at = noon.Add(time.Duration(step.after) * time.Minute)
		got := request(t, "PUT", url+step.path, "ignored", "X-Nomad-Token", writer)
		must.Eq(t, 200, got.code, must.Sprint(got.body))
		step.want.Index = w.State().Index()
		must.Eq(t, step.want.Index, got.index(t))
		must.Eq(t, step.want, decode[wire.DrainPauseResponse](t, got), must.Sprint(step.after, " ", step.path))
		read := func(path string) answer { return request(t, "GET", url+path, "", "X-Nomad-Token", reader) }
		must.Eq(t, step.want.All, decode[*wire.DrainPause](t, read(pauseAllPath)))
		story := decode[wire.DrainStory](t, read("/v1/drain/d1"))
		last := ""
		for _, e := range story.Journal.Events {
			if e.Kind == "paused" || e.Kind == "resumed" {
				last = e.Kind
			}
		}
		must.Eq(t, step.journal, last)
		for _, d := range []*wire.Drain{
			story.Drain, decode[wire.DrainList](t, read("/v1/drains")).Active[0].Drain, decode[wire.NodeDrain](t, read("/v1/node/"+uuid('a', 1)+"/drain")).Drain,
		} {
			must.Eq(t, step.since, d.PausedSince)
			must.Eq(t, step.by, d.PausedBy)
		}
		must.Eq(t, "", decode[wire.DrainStory](t, read("/v1/drain/d2")).Drain.PausedBy, must.Sprint("a forced drain is not paused"))
	}
}

// A request that cannot be granted changes nothing, and its answer states why.
func TestPauseDrains_refused(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(3)
	at := noon
	w.Now = func() time.Time { return at }
	w.drain(nodeID(1), cluster.DrainSpec{Deadline: time.Hour})
	w.drain(nodeID(2), cluster.DrainSpec{Deadline: -1})
	at = noon.Add(2 * time.Hour)
	url := w.serveAs(guarded(w), httpapi.Options{}).URL
	for _, refused := range []struct {
		path, token string
		code        int
		text        string
	}{
		{pausePath(1), "writer-token", 409, "drain cannot be paused: its deadline has passed"},
		{pausePath(2), "writer-token", 409, "drain cannot be paused: the drain is forced"},
		{pausePath(3), "writer-token", 409, "node does not drain"},
		{resumePath(3), "writer-token", 409, "node does not drain"},
		{pausePath(9), "writer-token", 404, "node not found"},
		{resumePath(9), "writer-token", 404, "node not found"},
		{pausePath(1), "reader-token", 403, "Permission denied"},
		{pauseAllPath, "reader-token", 403, "Permission denied"},
		{resumeAllPath, "reader-token", 403, "Permission denied"},
	} {
		got := request(t, "PUT", url+refused.path, "", "X-Nomad-Token", refused.token)
		must.Eq(t, refused.text, got.body)
		must.Eq(t, refused.code, got.code)
	}
	must.Nil(t, w.State().DrainView().DrainPause())
	must.Nil(t, w.State().Node(nodeID(1)).Drain.Paused)
}

// A pause of all writes no row of a node. It wakes the readers of the drains that it holds.
func TestBlocking_pauseOfAll(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(2)
		w.drain(nodeID(1), cluster.DrainSpec{Deadline: time.Hour})
		paths := []string{"/v1/node/" + string(nodeID(1)) + "/drain", "/v1/drain/d1", "/v1/drains", pauseAllPath}
		pause := func(node cluster.NodeID, pause bool) func() {
			return func() {
				w.must(&shims.PauseDrains{DrainPauseUpdate: cluster.DrainPauseUpdate{Node: node, Pause: pause, At: w.Now(), By: "ops"}})
			}
		}
		for _, change := range []func(){pause("", true), pause("", false), pause(nodeID(1), true), pause("", true), pause("", false)} {
			var readers []*reader
			for _, path := range paths {
				readers = append(readers, w.reads(h, at(path, w.reads(h, path).answer.index(t))))
			}
			for i, r := range readers {
				must.True(t, r.waits(), must.Sprint(paths[i]))
			}
			change()
			for i, r := range readers {
				must.False(t, r.waits(), must.Sprint(paths[i]))
			}
		}
	})
}
