package sim

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/clitest"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// A file without an expected result only has to keep the guarantees. -rewrite writes the expected
// result, and later runs must match it.
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
	must.StrHasPrefix(t, file+" rewritten\nok    case  ", out)
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
	must.StrContains(t, out, "differs from the file (-rewrite updates the file):\n")
	must.StrContains(t, out, "\n      - n1 forced\n      + n1 complete\n")
	must.StrHasSuffix(t, "      replay: nodedrain sim run "+file+"\n", out)
	must.Eq(t, "the scenario failed\n", errs)

	code, _, _ = command(t.Context(), "sim run -q -rewrite "+file)
	must.Zero(t, code)
	must.Eq(t, text, read(t, file))
}

// A single scenario is drawn, with its story on request, for any width of terminal and into files.
func TestSimRun_pictures(t *testing.T) {
	t.Parallel()
	line := "sim run testdata/limited.drain"

	code, out, errs := command(t.Context(), line+" -ascii -width 70 --story")
	must.Zero(t, code, must.Sprint(errs))
	clitest.Golden(t, "sim_run.golden", withoutHashes(out))
	must.Eq(t, -1, strings.IndexFunc(out, func(r rune) bool { return r > 127 }))

	dir := t.TempDir()
	svg := filepath.Join(dir, "case.svg")
	code, out, errs = command(t.Context(), line+" -q -svg "+svg)
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
	code, _, errs = command(t.Context(), line+" -q -svg "+filepath.Join(dir, "none", "x.svg"))
	must.One(t, code, must.Sprint(errs))
}

// Of several scenarios only those that fail are drawn, each with its failures and the command that
// plays it again. The others are named.
func TestSimRun_several(t *testing.T) {
	t.Parallel()
	code, out, errs := playedBy(buggy)(t.Context(), "sim run testdata/sound.drain testdata/broken.drain testdata/limited.drain -ascii testdata/odd.drain testdata/none.drain")
	must.One(t, code)
	clitest.Golden(t, "sim_run_several.golden", withoutHashes(out))
	must.Eq(t, "testdata/odd.drain:1: warning: no comment at the beginning states why the scenario exists\n"+
		"3 of 5 scenarios failed\n", errs)
}

// An operation without effect gives a warning with its line, unless maybe precedes it; it
// does not fail.
func TestSimRun_vain(t *testing.T) {
	t.Parallel()
	code, out, errs := command(t.Context(), "sim run -q testdata/vain.drain")
	must.Zero(t, code, must.Sprint(out))
	clitest.Golden(t, "sim_run_vain.golden", errs)
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

// The drain of a real cluster is an ordinary scenario: its printed file gives the same end.
func TestSimRun_cluster(t *testing.T) {
	t.Parallel()
	line := "sim run -cluster testdata/openb -nodes m-03,m-01 -deadline 3m -seed 2"
	code, printed, _ := command(t.Context(), line+" -print")
	must.Zero(t, code)
	clitest.Golden(t, "sim_cluster.drain", printed)

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

// A diff shows the lines that differ and a few around them.
func TestDiff(t *testing.T) {
	t.Parallel()
	must.Eq(t, "", diff("a\nb", "a\nb"))
	must.Eq(t, "- a\n+ b\n", diff("a", "b"))
	must.Eq(t, "-\n+ a\n", diff("", "a"))
	must.Eq(t, "  1\n  2\n- 3\n+ three\n  4\n  5\n  6\n  ...\n  10\n  11\n  12\n+ 12.5\n  13\n",
		diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13", "1\n2\nthree\n4\n5\n6\n7\n8\n9\n10\n11\n12\n12.5\n13"))
	long := diff("x\n"+strings.Repeat("a\n", 2100)+"y", "x\n"+strings.Repeat("b\n", 2100)+"y")
	must.Eq(t, "  x\n"+strings.Repeat("- a\n", 2100)+strings.Repeat("+ b\n", 2100)+"  y\n", long)
}

// The last line has the services that lack healthy allocations, and then whether the guarantees held.
func TestAtTheEnd(t *testing.T) {
	t.Parallel()
	r := new(sim.Result)
	must.Eq(t, "all services are healthy at the end; all guarantees held", atTheEnd(r))
	r.Unhealthy = []string{"web has 0 of 4 healthy, below its limit of 3"}
	must.Eq(t, "at the end web has 0 of 4 healthy, below its limit of 3; all guarantees held", atTheEnd(r))
	r.Unhealthy, r.Violations = []string{"a", "b", "c", "d", "e"}, make([]invariant.Violation, 2)
	must.Eq(t, "at the end a; b; c; 2 more services lack healthy allocations; violations of guarantees: 2", atTheEnd(r))
}
