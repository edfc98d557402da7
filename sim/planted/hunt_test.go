package planted_test

import (
	"flag"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
)

// hunted says which bugs are hunted for: a minute or so each.
var hunted = flag.String("planted", "", "hunt for the planted bugs whose names match")

func TestHunt(t *testing.T) {
	if *hunted == "" {
		t.Skip("no -planted says which bugs to hunt for")
	}
	top, err := filepath.Abs(root)
	must.NoError(t, err)
	which, err := regexp.Compile(*hunted)
	must.NoError(t, err)
	for _, b := range allBugs(t) {
		if !which.MatchString(b.Name) {
			continue
		}
		t.Run(b.Name, func(t *testing.T) {
			catches, err := planted.Hunt{Starts: planted.Starts()[:1]}.For(t.Context(), top, t.TempDir(), b)
			must.NoError(t, err)
			must.NotEq(t, "", catches[0].Check, must.Sprintf("not found within %d seeds", catches[0].Seeds))
			t.Logf("seed %d, the %dth, fails %s: %s\n%s", catches[0].Seed, catches[0].Seeds, catches[0].Check, catches[0].Text, catches[0].Scenario)
		})
	}
}

func TestRow_NotesWhatAHuntCameTo(t *testing.T) {
	t.Parallel()
	var r planted.Row
	r.Note([]planted.Catch{
		{Seeds: 900, Seed: 900, Check: "G6 sent twice", Events: 9},
		{Seeds: 10_000},
		{Seeds: 30, Seed: 1030, Check: "G1 below limit", Events: 4},
		{Seeds: 20, Seed: 2020, Check: "G1 below limit", Events: 7},
		{Seeds: 40, Seed: 3040, Check: "G1 below limit"},
	})
	must.Eq(t, planted.Row{Invariant: "G1 below limit", Found: 4, Starts: 5, Seeds: 40, Ops: 4}, r)
	r.Note([]planted.Catch{{Seeds: 10_000}})
	must.Eq(t, planted.Row{Invariant: planted.Hides, Starts: 1, Seeds: 10_000}, r)
}
