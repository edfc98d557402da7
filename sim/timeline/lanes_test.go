package timeline_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
)

// moved is a run in which web/0 on n1 was marked and stopped. Its replacement on n2 is not
// healthy yet.
func moved(t *testing.T, o timeline.Options) (*history, *timeline.Recorder, cluster.GroupKey) {
	h, r := newHistory(t), timeline.New(o)
	h.observers = append(h.observers, r.Applied)
	h.node("n1", "n2", "n3")
	web := h.job("web", cluster.JobService, 2, 1)
	h.place(web, "n1", "n3")
	h.at = time.Minute
	h.drain(&cluster.DrainSpec{Deadline: time.Hour}, "n1")
	h.mark(web, cluster.MarkPaced, "web/0")
	h.plan(web, []cluster.AllocID{"web/0"}, h.alloc(web, "web/0b", "n2", 0, "web/0"))
	h.at += 10 * time.Second
	h.gone("web/0")
	return h, r, web
}

// If a replacement fails, the picture shows the replacement of the replacement.
func TestSVG_replacementOfAReplacement(t *testing.T) {
	t.Parallel()
	h, r, web := moved(t, timeline.Options{Epoch: epoch})
	must.StrContains(t, svgOf(t, r), "gone 1m10s; replaced by web/0b on n2 at 1m</title>")
	h.report(cluster.ClientFailed, nil, "web/0b")
	h.at = 2 * time.Minute
	h.plan(web, nil, h.alloc(web, "web/0c", "n3", 0, "web/0b"))
	h.at = 3 * time.Minute
	h.healthy("web/0c")
	must.StrContains(t, svgOf(t, r), "gone 1m10s; replaced by web/0c on n3 at 2m, healthy 3m</title>")
}

// A deadline is a time of the leader's clock. Until it has passed, it moves when the clock is set.
func TestSVG_deadlineByTheClock(t *testing.T) {
	t.Parallel()
	h, r := newHistory(t), timeline.New(timeline.Options{Epoch: epoch})
	h.observers = append(h.observers, r.Applied)
	h.node("n1")
	h.place(h.job("web", cluster.JobService, 1, 1), "n1")
	r.Clock(0, -40*time.Minute) // the state has no deadline yet
	r.Clock(0, 0)
	h.at = time.Minute
	h.drain(&cluster.DrainSpec{Deadline: time.Hour}, "n1")
	for _, c := range []struct {
		at, ahead time.Duration
		want      string
	}{
		{0, 0, "1h1m"},
		{2 * time.Minute, -9 * time.Minute, "1h10m"},
		{3 * time.Minute, 20 * time.Minute, "41m"},
		{4 * time.Minute, 2 * time.Hour, "4m"},
		{5 * time.Minute, 0, "4m"},
	} {
		r.Clock(c.at, c.ahead)
		must.StrContains(t, svgOf(t, r), "1 to go, deadline at "+c.want+"<", must.Sprint(c))
	}
}

// Long names are cut where they differ, or numbered: no two lanes have the same label.
func TestPictures_ofLongNames(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]string{
		{"ls-cpu11000m-mem24000-gpu1000", "ls-cpu11200m-mem24000-gpu1000", "ls-cpu4000m-mem24000-gpu1000"},
		{"one-with-a-long-name-that-ends-in-0001", "one-with-a-long-name-that-ends-in-0002"},
		{"a-very-long-beginning-one-a-very-long-end", "a-very-long-beginning-two-a-very-long-end"},
	} {
		h, r := newHistory(t), timeline.New(timeline.Options{Epoch: epoch})
		h.observers = append(h.observers, r.Applied)
		for _, id := range ids {
			h.node(cluster.NodeID(id))
			h.place(h.job(cluster.JobID(id), cluster.JobService, 1, 1), cluster.NodeID(id))
			h.drain(&cluster.DrainSpec{}, cluster.NodeID(id))
		}
		names := map[string]int{}
		for _, name := range regexp.MustCompile(`<text class="name" x="24"[^>]*>([^<]*…[^<]*)<`).FindAllStringSubmatch(svgOf(t, r), -1) {
			names[name[1]]++
		}
		must.MapLen(t, 2*len(ids), names, must.Sprint(names)) // labels of nodes and groups differ in length
		_, lanes, _ := strings.Cut(textOf(t, r, timeline.TextOptions{Columns: 60}), "\nnodes ")
		clear(names)
		for _, name := range regexp.MustCompile(`(?m)^\S*…\S*`).FindAllString(lanes, -1) {
			names[name]++
		}
		must.MapLen(t, len(ids), names, must.Sprint(names)) // a node and its group have the same label
	}
}

// A time below the limit is visible, even if it is short.
func TestPictures_ofAShortTimeBelowTheLimit(t *testing.T) {
	t.Parallel()
	h, r, _ := moved(t, timeline.Options{Epoch: epoch})
	must.StrNotContains(t, svgOf(t, r), `class="below" x="2`)
	no := false
	h.report(cluster.ClientRunning, &no, "web/1")
	h.healthy("web/1")
	h.at = 5 * time.Minute
	h.healthy("web/0b")
	must.StrContains(t, svgOf(t, r), "web: 0 of 2 healthy, limit 1, 1m10s to 1m10s")
	must.StrContains(t, textOf(t, r, timeline.TextOptions{}), "▼")
}

// A node that is drained again has one lane for all its drains.
func TestPictures_ofANodeDrainedTwice(t *testing.T) {
	t.Parallel()
	h, r, _ := moved(t, timeline.Options{Epoch: epoch})
	h.finish("n1")
	h.at = 2 * time.Minute
	h.drain(&cluster.DrainSpec{Deadline: -1}, "n1")
	h.finish("n1")
	must.StrContains(t, svgOf(t, r), "1 to go, deadline at 1h1m", must.Sprint("the drain with the most allocations"))
	h.at = 3 * time.Minute
	h.drain(&cluster.DrainSpec{}, "n1")
	text, picture := textOf(t, r, timeline.TextOptions{}), svgOf(t, r)
	must.StrContains(t, text, "3 drains")
	must.StrContains(t, text, "running", must.Sprint("the current drain"))
	must.StrContains(t, picture, "one of 3 drains")
	must.StrContains(t, picture, "n1: drain d5, 0 to go, 2m to 2m: complete")
}

// failing is a writer that fails after some writes.
type failing struct{ left int }

var errFull = errors.New("disk full")

func (f *failing) Write(p []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// Pictures return the errors of their writers.
func TestPictures_ofAFullDisk(t *testing.T) {
	t.Parallel()
	r := timeline.New(timeline.Options{Epoch: epoch})
	must.ErrorIs(t, r.Text(&failing{}, timeline.TextOptions{}), errFull)
	must.ErrorIs(t, r.SVG(&failing{}), errFull)
}
