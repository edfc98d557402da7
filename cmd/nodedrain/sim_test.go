package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

var rewrite = flag.Bool("rewrite", false, "write what the tests see into testdata; read the diff before you commit it")

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		must.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must.NoError(t, err)
	must.Eq(t, string(want), got)
}

// simulating is a simulator that may find what it is told to find.
type simulating struct {
	simCommand
	stdout, stderr bytes.Buffer
}

// newSimulating plays scenarios, and has those fail G1 that have a drain with a
// deadline: it stands for a bug.
func newSimulating(t *testing.T) *simulating {
	s := new(simulating)
	s.simCommand = simCommand{ctx: t.Context(), out: &s.stdout, errs: &s.stderr, play: buggy}
	return s
}

func buggy(s *scenario.Scenario, o sim.Options) (*sim.Result, error) {
	r, err := sim.Play(s, o)
	if err != nil {
		return nil, err
	}
	for _, e := range s.Events {
		if d, is := e.Op.(*scenario.Drain); is && d.Deadline > 0 {
			r.Violations = append(r.Violations, invariant.Violation{
				Guarantee: "G1", Check: "below limit", At: world.Epoch.Add(5 * time.Second), Index: 17, Node: d.Nodes[0],
				Text: "3 of 5 are healthy, and it has to be 4",
			})
			break
		}
	}
	return r, nil
}

// files writes files into a folder of the test's, and returns it.
func files(t *testing.T, texts map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range texts {
		must.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

// withoutHashes leaves out what any change of the product changes.
func withoutHashes(text string) string {
	return regexp.MustCompile("hash [0-9a-f]{16}").ReplaceAllString(text, "hash HASH")
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	must.NoError(t, err)
	return string(text)
}

// What a user may type by mistake is answered with what was wrong, and nothing is
// played.
func TestSim_mistakes(t *testing.T) {
	t.Parallel()
	cases := []struct{ line, want string }{
		{"sim run", `no scenario file is named; "nodedrain sim run -h" says how`},
		{"sim run -colour a.drain", `flag provided but not defined: -colour; "nodedrain sim run -h" lists the options`},
		{"sim run a.drain -colour", `flag provided but not defined: -colour`},
		{"sim run a.drain -cluster x", "a.drain stands beside -cluster or -size"},
		{"sim run a.drain b.drain -svg x", "-svg and -trace are of one scenario"},
		{"sim run a.drain -width -3", "-width is -3 and must be above 0"},
		{"sim run a.drain -seed 3", "-seed is of -size or -cluster"},
		{"sim run a.drain -nodes n1", "-nodes is about a cluster: say -cluster DIR"},
		{"sim run -cluster testdata/none", "testdata/none/nodes.csv"},
		{"sim run -cluster testdata/none -size small", "-cluster and -size do not go together"},
		{"sim run -cluster testdata/none -rewrite", "-rewrite and -cluster do not go together"},
		{"sim run --cluster=x --nodes=a --drains=2", "-nodes and -drains do not go together"},
		{"sim run -cluster testdata/openb -nodes m-00,m-99", `the cluster has no node "m-99"`},
		{"sim run -cluster testdata/openb -nodes m-00,m-00", "-nodes names m-00 twice"},
		{"sim run -cluster testdata/openb -drains 15", "15 of 20 nodes are to be drained"},
		{"sim run -cluster testdata/openb -drains 0", "-drains is 0 and must be above 0"},
		{"sim run -cluster testdata/openb -deadline -1s", "-deadline is -1s and must not be below 0"},
		{"sim run -size tiny", `-size: "tiny" is no size: there are small, medium and large`},
		{"sim run -size small -seed 0", "-seed is 0 and must be above 0"},
		{"sim swarm -seeds 0", "-seeds is 0 and must be above 0"},
		{"sim swarm -seeds many", `invalid value "many" for flag -seeds`},
		{"sim swarm -seed 0", "-seed is 0 and must be above 0"},
		{"sim swarm -size huge", `"huge" is no size`},
		{"sim swarm -workers -2", "-workers is -2 and must be above 0"},
		{"sim swarm now", `unexpected argument "now"; "nodedrain sim swarm -h" lists the options`},
		{"sim shrink", "no scenario file is named, and no seed"},
		{"sim shrink testdata/none.drain", "testdata/none.drain"},
		{"sim shrink a.drain b.drain", "b.drain: one scenario at a time"},
		{"sim shrink a.drain -seed 3", "a.drain and -seed: either a file or a seed"},
		{"sim shrink a.drain -size small", "-size is about a seed: say -seed S"},
		{"sim shrink -seed 3 -size huge", `"huge" is no size`},
		{"sim shrink -seed 3 -plays 0", "-plays is 0 and must be above 0"},
	}
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			code, out, errs := command(t.Context(), c.line)
			must.Eq(t, 1, code)
			must.Eq(t, "", out)
			must.StrContains(t, errs, c.want)
			must.Eq(t, 1, strings.Count(errs, "\n"), must.Sprint(errs))
		})
	}
}

// Help is as it is written down, and names every option.
func TestSim_help(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]*flag.FlagSet{
		"sim":        flag.NewFlagSet("", flag.ContinueOnError),
		"sim run":    new(simRunFlags).set(),
		"sim swarm":  new(simSwarmFlags).set(),
		"sim shrink": new(simShrinkFlags).set(),
	} {
		for _, help := range []string{" -h", " --help"} {
			code, out, _ := command(t.Context(), name+help)
			must.Zero(t, code)
			golden(t, "help/"+strings.ReplaceAll(name, " ", "_")+".golden", out)
			set.VisitAll(func(f *flag.Flag) { must.StrContains(t, out, "-"+f.Name) })
		}
	}
}

// A file that says nothing of what is to come of it only has to keep the guarantees;
// rewritten it says so, and is held to it from then on.
func TestSimRun_rewrite(t *testing.T) {
	t.Parallel()
	sound := read(t, "testdata/sound.drain")
	dir := files(t, map[string]string{"case.drain": sound})
	file := filepath.Join(dir, "case.drain")

	code, out, errs := command(t.Context(), "sim run -q "+file)
	must.Zero(t, code, must.Sprint(out, errs))
	must.StrHasPrefix(t, "ok    case  ", out)

	code, out, _ = command(t.Context(), "sim run -q --rewrite "+file)
	must.Zero(t, code)
	must.StrHasPrefix(t, file+" is rewritten\nok    case  ", out)
	text := read(t, file)
	must.StrHasPrefix(t, sound+"----\n", text)
	must.StrContains(t, text, "n1 complete")
	code, out, _ = command(t.Context(), "sim run -q -rewrite "+file)
	must.Zero(t, code)
	must.StrHasPrefix(t, "ok    case  ", out)

	wrong := strings.Replace(text, "n1 complete", "n1 forced", 1)
	must.NotEq(t, text, wrong)
	must.NoError(t, os.WriteFile(file, []byte(wrong), 0o644))
	code, out, errs = command(t.Context(), "sim run -q "+file)
	must.One(t, code)
	must.StrContains(t, out, "FAIL  case  ")
	must.StrContains(t, out, "is not what the file says (-rewrite has it say so):\n")
	must.StrContains(t, out, "\n      - n1 forced\n      + n1 complete\n")
	must.StrHasSuffix(t, "      to play it again: nodedrain sim run "+file+"\n", out)
	must.Eq(t, "the scenario failed\n", errs)

	code, _, _ = command(t.Context(), "sim run -q -rewrite "+file)
	must.Zero(t, code)
	must.Eq(t, text, read(t, file))
}

// One scenario is drawn, with its story if that is asked for, on a terminal of any
// width or none, and into files.
func TestSimRun_pictures(t *testing.T) {
	t.Parallel()
	line := "sim run testdata/limited.drain"

	code, out, errs := command(t.Context(), line+" -ascii -width 70 --story")
	must.Zero(t, code, must.Sprint(errs))
	golden(t, "sim_run.golden", withoutHashes(out))
	must.Eq(t, -1, strings.IndexFunc(out, func(r rune) bool { return r > 127 }))

	dir := t.TempDir()
	svg, trace := filepath.Join(dir, "case.svg"), filepath.Join(dir, "case.ndjson")
	code, out, errs = command(t.Context(), line+" -q -svg "+svg+" -trace "+trace)
	must.Zero(t, code, must.Sprint(errs))
	must.StrHasPrefix(t, "ok    limited  ", out)
	decoder := xml.NewDecoder(strings.NewReader(read(t, svg)))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		must.NoError(t, err)
	}
	kinds := map[string]bool{}
	for line := range strings.Lines(read(t, trace)) {
		var l struct{ Event string }
		must.NoError(t, json.Unmarshal([]byte(line), &l))
		kinds[l.Event] = true
	}
	for _, kind := range []string{"elected", "applied", "fault", "drainer", "proposed", "answered"} {
		must.True(t, kinds[kind], must.Sprint(kind))
	}

	code, _, errs = command(t.Context(), line+" -q -svg "+filepath.Join(dir, "none", "x.svg"))
	must.One(t, code, must.Sprint(errs))
}

// Of several scenarios those are drawn that fail, each with what was wrong and how to
// play it again; the others are named.
func TestSimRun_several(t *testing.T) {
	t.Parallel()
	s := newSimulating(t)
	code := (&simRunCommand{s.simCommand}).Run([]string{
		"testdata/sound.drain", "testdata/broken.drain", "testdata/limited.drain", "-ascii", "testdata/odd.drain", "testdata/none.drain",
	})
	must.One(t, code)
	golden(t, "sim_run_several.golden", withoutHashes(s.stdout.String()))
	must.Eq(t, "testdata/odd.drain:1: warning: no comment at the beginning says why the scenario exists\n"+
		"3 of 5 scenarios failed\n", s.stderr.String())
}

// A seed's scenario is printed and played, with one dash and with two.
func TestSimRun_seed(t *testing.T) {
	t.Parallel()
	code, out, _ := command(t.Context(), "sim run -size small -seed 3 -print")
	must.Zero(t, code)
	file := filepath.Join(files(t, map[string]string{"small-3.drain": out}), "small-3.drain")
	_, one, _ := command(t.Context(), "sim run -q "+file)
	_, two, _ := command(t.Context(), "sim run --q --size small --seed 3")
	must.StrContains(t, one, "small-3")
	must.Eq(t, one[:strings.Index(one, "\n")], two[:strings.Index(two, "\n")])
}

// The drain of a real cluster is a scenario like any other: it can be printed, and
// the file comes to the same end.
func TestSimRun_cluster(t *testing.T) {
	t.Parallel()
	line := "sim run -cluster testdata/openb -nodes m-03,m-01 -deadline 3m -seed 2"
	code, printed, _ := command(t.Context(), line+" -print")
	must.Zero(t, code)
	golden(t, "sim_cluster.drain", printed)

	code, out, errs := command(t.Context(), line+" -ascii -story")
	must.Zero(t, code, must.Sprint(out, errs))
	must.StrContains(t, out, "replay: nodedrain sim run -cluster testdata/openb -deadline 3m0s -seed 2 -nodes m-03,m-01\n")
	must.StrContains(t, out, "\nm-01 ")
	must.StrContains(t, out, "\nok    cluster  ")
	file := filepath.Join(files(t, map[string]string{"cluster.drain": printed}), "cluster.drain")
	_, again, _ := command(t.Context(), "sim run -q "+file)
	must.StrHasSuffix(t, again, out)

	_, printed, _ = command(t.Context(), "sim run -cluster testdata/openb -drains 4 -deadline 0 -print")
	s, _, err := scenario.Parse("cluster.drain", strings.NewReader(printed))
	must.NoError(t, err)
	drain := s.Events[0].Op.(*scenario.Drain)
	must.SliceLen(t, 4, drain.Nodes)
	must.Zero(t, drain.Deadline)
}

// A swarm that finds nothing says how fast it was; its JSON has the hash of each
// seed, which are those that its scenarios come to alone.
func TestSimSwarm(t *testing.T) {
	t.Parallel()
	s := &simulating{}
	s.simCommand = simCommand{ctx: t.Context(), out: &s.stdout, errs: &s.stderr, play: flawless}
	must.Zero(t, (&simSwarmCommand{s.simCommand}).Run([]string{"--seeds", "12", "-seed", "5", "-workers", "3"}), must.Sprint(s.stdout.String()))
	must.StrHasPrefix(t, "ok    12 small seeds from 5 on, 0 failed, ", s.stdout.String())
	must.StrContains(t, s.stdout.String(), "seeds per minute")

	s.stdout.Reset()
	must.Zero(t, (&simSwarmCommand{s.simCommand}).Run([]string{"-seeds=12", "--seed=5", "-json"}))
	var report swarmReport
	decoder := json.NewDecoder(&s.stdout)
	decoder.DisallowUnknownFields()
	must.NoError(t, decoder.Decode(&report))
	must.True(t, report.OK)
	must.Eq(t, swarmReportVersion, report.Version)
	must.SliceLen(t, 12, report.Hashes)
	must.SliceEmpty(t, report.Failures)
	must.SliceNotEmpty(t, report.Events)
	for i, h := range report.Hashes {
		must.Eq(t, uint64(5+i), h.Seed)
	}
	_, out, _ := command(t.Context(), "sim run -q -size small -seed 7")
	must.StrContains(t, out, "hash "+report.Hashes[2].Hash)
	must.Eq(t, "", s.stderr.String())
}

// flawless is a simulator whose judges find nothing.
func flawless(s *scenario.Scenario, o sim.Options) (*sim.Result, error) {
	r, err := sim.Play(s, o)
	if err == nil {
		r.Violations = nil
	}
	return r, err
}

// Seeds that fail are named with what plays them again, and kept as scenarios that
// fail too.
func TestSimSwarm_fails(t *testing.T) {
	t.Parallel()
	s := newSimulating(t)
	dir := filepath.Join(t.TempDir(), "kept")
	must.One(t, (&simSwarmCommand{s.simCommand}).Run([]string{"-seeds", "2", "-seed", "2", "-keep", dir}))
	must.Eq(t, "the swarm failed\n", s.stderr.String())
	kept, err := filepath.Glob(filepath.Join(dir, "small-*.drain"))
	must.NoError(t, err)
	must.SliceNotEmpty(t, kept)
	for _, file := range kept {
		seed := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "small-"), ".drain")
		must.StrContains(t, s.stdout.String(), "\n      to play it again: nodedrain sim run -size small -seed "+seed+"\n"+
			"      kept, frozen: nodedrain sim run "+file+"\n")
		again := newSimulating(t)
		must.One(t, (&simRunCommand{again.simCommand}).Run([]string{file, "-q"}))
		must.StrContains(t, again.stdout.String(), "G1 below limit at index 17, node ")
	}

	s = newSimulating(t)
	must.One(t, (&simSwarmCommand{s.simCommand}).Run([]string{"-seeds", "2", "-seed", "2", "-keep", dir, "-json"}))
	var report swarmReport
	must.NoError(t, json.Unmarshal(s.stdout.Bytes(), &report))
	must.False(t, report.OK)
	must.Eq(t, len(kept), report.Failed)
	must.Eq(t, "5s", report.Failures[0].Violations[0].At)
	must.Eq(t, "below limit", report.Failures[0].Violations[0].Check)
	must.FileExists(t, report.Failures[0].File)
}

// A failing scenario shrinks to what is needed, and plays and fails again.
func TestSimShrink(t *testing.T) {
	t.Parallel()
	const file = "testdata/limited.drain"
	s := newSimulating(t)
	must.Zero(t, (&simShrinkCommand{s.simCommand}).Run([]string{file}))
	golden(t, "sim_shrink.drain", s.stdout.String())
	must.StrHasPrefix(t, "G1 below limit: 3 of 5 are healthy, and it has to be 4\n2 events, 3 nodes, 1 jobs and 2 allocations before, "+
		"1 events, 1 nodes, 0 jobs and 0 allocations now; ", s.stderr.String())

	s = newSimulating(t)
	small := filepath.Join(t.TempDir(), "small.drain")
	must.Zero(t, (&simShrinkCommand{s.simCommand}).Run([]string{file, "-freeze", "-o", small}))
	must.Eq(t, "", s.stdout.String())
	must.StrHasSuffix(t, "to play it: nodedrain sim run "+small+"\n", s.stderr.String())
	again := newSimulating(t)
	must.One(t, (&simRunCommand{again.simCommand}).Run([]string{small, "-q"}))

	code, out, errs := command(t.Context(), "sim shrink "+file)
	must.One(t, code)
	must.Eq(t, "", out)
	must.Eq(t, "shrinking limited: the scenario does not fail\n", errs)
}

// The lines that differ are shown, with a few around them.
func TestDiff(t *testing.T) {
	t.Parallel()
	must.Eq(t, "", diff("a\nb", "a\nb"))
	must.Eq(t, "- a\n+ b\n", diff("a", "b"))
	must.Eq(t, "-\n+ a\n", diff("", "a"))
	must.Eq(t, "  2\n  3\n- 4\n+ four\n  5\n  6\n  ...\n  8\n  9\n+ 9.5\n  10\n",
		diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n10", "1\n2\n3\nfour\n5\n6\n7\n8\n9\n9.5\n10"))
	long := diff("x\n"+strings.Repeat("a\n", 2100)+"y", "x\n"+strings.Repeat("b\n", 2100)+"y")
	must.Eq(t, "  x\n"+strings.Repeat("- a\n", 2100)+strings.Repeat("+ b\n", 2100)+"  y\n", long)
}
