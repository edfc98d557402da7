package planted_test

import (
	"os"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
)

// enough is a table that meets what is asked.
func enough() planted.Table {
	var t planted.Table
	for i := range 32 {
		r := planted.Row{
			Bug: string(rune('A' + i)), Breaks: []planted.Guarantee{planted.Guarantees()[i%8]},
			Test: "drainer.TestX", Invariant: "G1 below limit", Found: 2, Starts: 3, Seeds: planted.MaxSeeds, Ops: 10,
		}
		if i < 10 {
			r.Test = planted.Survives
		}
		if i < 3 { // of 32
			r.Ops = 11
		}
		t = append(t, r)
	}
	return t
}

// A demand that cannot be missed asks for nothing.
func TestDemands_CanBeMissed(t *testing.T) {
	t.Parallel()
	must.NoError(t, planted.Required().Unmet(enough()))
	must.NoError(t, planted.Demands{}.Unmet(nil))
	for _, c := range []struct {
		want string
		miss func(planted.Table) planted.Table
	}{
		{"24 bugs, and 25 are asked for", func(t planted.Table) planted.Table { return t[:24] }},
		{"1 bugs break G8 before others, and 2 are asked for", func(t planted.Table) planted.Table {
			for i := 7; i < 31; i += 8 {
				t[i].Breaks = []planted.Guarantee{"G7", "G8"}
			}
			return t
		}},
		{"9 bugs survive the ordinary tests, and 10 are asked for", func(t planted.Table) planted.Table { t[0].Test = "drainer.TestX"; return t }},
		{"D has not been hunted", func(t planted.Table) planted.Table { t[3].Starts, t[3].Found = 0, 0; return t }},
		{"D was found from 0 of 3 starts", func(t planted.Table) planted.Table { t[3].Found = 0; return t }},
		{"D was found from 1 of 3 starts", func(t planted.Table) planted.Table { t[3].Found = 1; return t }},
		{"D was found from 2 of 4 starts", func(t planted.Table) planted.Table { t[3].Starts = 4; return t }},
		{"D was hunted from 2 of 3 starts", func(t planted.Table) planted.Table { t[3].Starts = 2; return t }},
		{"D was hunted from 1 of 3 starts", func(t planted.Table) planted.Table { t[3].Found, t[3].Starts = 1, 1; return t }},
		{"13 bugs are found by an ordinary test and by no seed, and 12 are allowed", func(t planted.Table) planted.Table {
			for i := 10; i < 23; i++ {
				t[i].Found = 0
			}
			return t
		}},
		{"the ordinary tests have not been run against D", func(t planted.Table) planted.Table { t[3].Test = ""; return t }},
		{"D takes 10001 seeds, and 10000 are allowed", func(t planted.Table) planted.Table { t[3].Seeds++; return t }},
		{"28 of the 32 bugs whose scenario was shrunk have at most 10 operations", func(t planted.Table) planted.Table { t[3].Ops++; return t }},
		{"0 of the 0 bugs whose scenario was shrunk have at most 10 operations", func(t planted.Table) planted.Table {
			for i := range t {
				t[i].Ops = 0
			}
			return t
		}},
	} {
		must.ErrorContains(t, planted.Required().Unmet(c.miss(enough())), c.want)
	}
}

// What was measured says that the simulator is not blind.
func TestFound_MeetsWhatIsAsked(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("FOUND.md")
	must.NoError(t, err)
	table, err := planted.ReadTable(string(text))
	must.NoError(t, err)
	must.NoError(t, planted.Required().Unmet(table.Match(allBugs(t))))
}
