package planted_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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

// failing is a hunter whose seeds of those numbers fail.
func failing(t *testing.T, seeds ...int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hunt")
	text := fmt.Sprintf(`#!/bin/sh
for seed in %s; do
	if [ "$2" -le $seed ] && [ $seed -lt $(($2 + $4)) ]; then
		echo "{\"Seeds\":$((seed - $2 + 1)),\"Seed\":$seed,\"Check\":\"G1 below limit\"}"
		exit
	fi
done
echo "{\"Seeds\":$4}"
`, strings.Trim(fmt.Sprint(seeds), "[]"))
	must.NoError(t, os.WriteFile(file, []byte(text), 0o700))
	return file
}

// A seed that fails without the bug too says nothing of it.
func TestHunt_PassesOverWhatFailsWithoutTheBug(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell")
	}
	for _, c := range []struct {
		hunt planted.Hunt
		want planted.Catch
	}{
		{planted.Hunt{Seeds: 20}, planted.Catch{Seeds: 5, Seed: 15, Check: "G1 below limit"}},
		{planted.Hunt{Seeds: 20, Control: failing(t, 15, 17)}, planted.Catch{Seeds: 9, Seed: 19, Check: "G1 below limit"}},
		{planted.Hunt{Seeds: 8, Control: failing(t, 15, 17)}, planted.Catch{Seeds: 8}},
		{planted.Hunt{Seeds: 5, Control: failing(t, 15, 17)}, planted.Catch{Seeds: 5}},
		{planted.Hunt{Seeds: 4}, planted.Catch{Seeds: 4}},
	} {
		got, err := c.hunt.From(t.Context(), failing(t, 15, 17, 19), 11)
		must.NoError(t, err)
		must.Eq(t, c.want, got)
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
