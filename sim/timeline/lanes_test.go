package timeline_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// moving is a scenario in which web[0] moves from n1 to n2.
const moving = "node n1..n3\njob web count=2 max-parallel=1 min-healthy=1ms\nalloc web on=n1,n3\nclient * start=10ms stop=10s\nat 1m drain n1 deadline=1h\n"

// If a replacement fails, the picture shows the replacement of the replacement.
func TestSVG_replacementOfAReplacement(t *testing.T) {
	t.Parallel()
	must.StrContains(t, svgOf(t, recorded(t, moving)), "gone 1m5s; replaced by a000003 on n2 at 1m, healthy 1m</title>")
	must.StrContains(t, svgOf(t, recorded(t, moving+"at 90s fail web[0]\n")), "gone 1m5s; replaced by a000004 on n3 at 1m30s, healthy 1m30s</title>")
}

// A deadline is a time of the leader's clock. Until it has passed, it moves when the clock is set.
func TestSVG_deadlineByTheClock(t *testing.T) {
	t.Parallel()
	r := recorded(t, "node n1\njob sum type=batch\nalloc sum on=n1\nat 1m drain n1 deadline=1h\nrun for=61s\n")
	for _, c := range []struct {
		at, ahead time.Duration
		want      string
	}{
		{61 * time.Second, 0, "1h1m"},
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
		text := "cluster servers=1\n"
		for _, id := range ids {
			text += fmt.Sprintf("node %s\njob %s\nalloc %s on=%s\n", id, id, id, id)
		}
		for _, id := range ids {
			text += fmt.Sprintf("at 1s drain %s\n", id)
		}
		r := recorded(t, text)
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
	must.StrNotContains(t, svgOf(t, recorded(t, moving+"run for=20m\n")), `class="below" x="2`)
	r := recorded(t, moving+"at 1m fail web[1]\nat 1m fail web[0]@n1\nrun for=20m\n")
	must.RegexMatch(t, regexp.MustCompile(`web: 0 of 2 healthy, limit 1, 1m to 1m`), svgOf(t, r))
	must.StrContains(t, textOf(t, r, timeline.TextOptions{}), "▼")
}

// A node that is drained again has one lane for all its drains.
func TestPictures_ofANodeDrainedTwice(t *testing.T) {
	t.Parallel()
	const twice = moving + "at 2m drain n1 deadline=force\n"
	must.StrContains(t, svgOf(t, recorded(t, twice)), "1 to go, deadline at 1h1m", must.Sprint("the drain with the most allocations"))
	r := recorded(t, twice+"at 3m place web[2] on=n1 count=3\nat 3m drain n1\nrun for=181s\n")
	text, picture := textOf(t, r, timeline.TextOptions{}), svgOf(t, r)
	must.StrContains(t, text, "3 drains")
	must.StrContains(t, text, "running", must.Sprint("the current drain"))
	must.StrContains(t, picture, "one of 3 drains")
	must.StrContains(t, picture, "n1: drain d000002, 0 to go, 2m to 2m: complete")
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
	r := timeline.New(timeline.Options{Epoch: world.Epoch})
	must.ErrorIs(t, r.Text(&failing{}, timeline.TextOptions{}), errFull)
	must.ErrorIs(t, r.SVG(&failing{}), errFull)
}
