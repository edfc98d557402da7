package scenario_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// same compares large things fast, and tells how they differ if they do.
func same(t testing.TB, want, got *scenario.Scenario, text string) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		must.Eq(t, want, got, must.Sprint(text))
	}
}

// without is a scenario without the places of its events in a file.
func without(s *scenario.Scenario) *scenario.Scenario {
	s = s.Copy()
	for i := range s.Events {
		s.Events[i].Line = 0
	}
	return s
}

// FuzzParse: no text makes the parser panic; what it takes is printed so that it
// reads the same, in a form that printing does not change; and its expectation can
// be rewritten without changing anything else.
func FuzzParse(f *testing.F) {
	f.Add(everything(f))
	f.Add([]byte(lines))
	f.Add([]byte("# why\nnode n8..n12\njob a1..a3 count=2\nalloc a1..a3 on=n8..n10\nat 0s drain n8,n9..n12 deadline=force\n----\nx\n----\ny\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, _, err := scenario.Parse("case.drain", bytes.NewReader(text))
		if err != nil {
			must.Nil(t, s)
			return
		}
		printed := print(t, s)
		again, _, err := scenario.Parse("case.drain", strings.NewReader(printed))
		must.NoError(t, err, must.Sprint(printed))
		same(t, without(s), without(again), printed)
		must.Eq(t, printed, print(t, again))
		must.NoError(t, s.Check())

		rewritten, _, err := scenario.Parse("case.drain", bytes.NewReader(scenario.Rewrite(text, "a story", "an end")))
		must.NoError(t, err)
		want := s.Copy()
		want.Story, want.End = "a story", "an end"
		same(t, want, rewritten, printed)
	})
}
