package scenario_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// same fails with a diff if two scenarios differ. It is fast if they do not.
func same(t must.T, want, got *scenario.Scenario, text string) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		must.Eq(t, want, got, must.Sprint(text))
	}
}

// withoutLines returns a copy without the line numbers of events.
func withoutLines(s *scenario.Scenario) *scenario.Scenario {
	s = s.Copy()
	for i := range s.Events {
		s.Events[i].Line = 0
	}
	return s
}

// No text makes the parser panic. A scenario that is printed and read again is the same, and its
// printed text does not change. Rewrite changes only the expected texts.
func FuzzParse(f *testing.F) {
	f.Add(everything(f))
	f.Add([]byte(lines))
	f.Add([]byte("# why\nnode n8..n12\njob a1..a3 count=2\nalloc a1..a3 on=n8..n10\nat 0s drain n8,n9..n12 deadline=force\n----\nx\n----\ny\n"))
	f.Add([]byte("# why\nnode n1..n3\nat 1m drain n1\nat +5m drain n2\nat +5m before marks maybe cancel n2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, _, err := scenario.Parse("case.drain", bytes.NewReader(text))
		if err != nil {
			must.Nil(t, s)
			return
		}
		roundTrip(t, s)
		must.NoError(t, s.Check())

		rewritten, _, err := scenario.Parse("case.drain", bytes.NewReader(scenario.Rewrite(text, "a story", "an end")))
		must.NoError(t, err)
		want := s.Copy()
		want.Story, want.End = "a story", "an end"
		same(t, want, rewritten, "")
	})
}

// A random scenario that is printed and read again is the same. Its copy shares nothing with it.
func TestPrint_RoundTrip(t *testing.T) {
	t.Parallel()
	samples := samples(t)
	rapid.Check(t, func(rt *rapid.T) {
		s, _ := parse(t, drawFile(rt, samples))
		roundTrip(t, s)
		c := s.Copy()
		same(t, s, c, "")
		must.SliceEmpty(t, shared(reflect.ValueOf(s).Elem(), reflect.ValueOf(c).Elem(), "scenario"))
	})
}

// roundTrip prints a scenario and reads it again. It is the same, and so is its printed text.
func roundTrip(t *testing.T, s *scenario.Scenario) {
	t.Helper()
	printed := print(t, s)
	again, _, err := scenario.Parse("case.drain", strings.NewReader(printed))
	must.NoError(t, err, must.Sprint(printed))
	same(t, withoutLines(s), withoutLines(again), printed)
	must.Eq(t, printed, print(t, again))
}

// shared names the pointers and slices that two values share.
func shared(a, b reflect.Value, name string) []string {
	var found []string
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.Kind() == reflect.Pointer && !a.IsNil() && a.Pointer() == b.Pointer() && a.Type().Elem().Size() > 0 {
			found = append(found, name)
		}
		if !a.IsNil() {
			found = append(found, shared(a.Elem(), b.Elem(), name)...)
		}
	case reflect.Slice:
		if a.Len() > 0 && a.Pointer() == b.Pointer() {
			found = append(found, name)
		}
		for i := range a.Len() {
			found = append(found, shared(a.Index(i), b.Index(i), fmt.Sprintf("%s[%d]", name, i))...)
		}
	case reflect.Struct:
		for i := range a.NumField() {
			found = append(found, shared(a.Field(i), b.Field(i), name+"."+a.Type().Field(i).Name)...)
		}
	}
	return found
}

// Copy copies every word of the language. Random scenarios may lack some.
func TestCopy_Everything(t *testing.T) {
	t.Parallel()
	s, _ := parse(t, string(everything(t)))
	c := s.Copy()
	same(t, s, c, "")
	must.SliceEmpty(t, shared(reflect.ValueOf(s).Elem(), reflect.ValueOf(c).Elem(), "scenario"))
}

// Rewrite replaces only the expected texts. Comments, order and spaces stay.
func TestRewrite(t *testing.T) {
	t.Parallel()
	const setup = "# why\n\nnode   n1 # one\n\n# and then\nat 0s drain n1"
	for text, want := range map[string]string{
		setup:                                   setup + "\n----\na\n----\nb\n",
		setup + "\n\n\n":                        setup + "\n----\na\n----\nb\n",
		setup + "\n----\nold\n----\nold\n":      setup + "\n----\na\n----\nb\n",
		setup + "\n----   \nold\n\nolder\n":     setup + "\n----\na\n----\nb\n",
		setup + "\n\n----\n\n----\n\n----\nx\n": setup + "\n----\na\n----\nb\n",
	} {
		must.Eq(t, want, string(scenario.Rewrite([]byte(text), "a", "b")))
	}
	must.Eq(t, setup+"\n----\na\n", string(scenario.Rewrite([]byte(setup), "a", "")))
	must.Eq(t, setup+"\n----\n----\nb\n", string(scenario.Rewrite([]byte(setup), "", "b")))
	must.Eq(t, setup+"\n", string(scenario.Rewrite([]byte(setup+"\n----\nold\n"), "", "")))
}

// Print returns the error of its writer.
func TestPrint_WriteError(t *testing.T) {
	t.Parallel()
	s, _ := parse(t, string(everything(t)))
	must.ErrorIs(t, scenario.Print(brokenWriter{}, s), errBroken)
}

var errBroken = errors.New("the disk is full")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

// Check returns the error that the printed file would have.
func TestCheck(t *testing.T) {
	t.Parallel()
	s, _ := parse(t, lines)
	must.NoError(t, s.Check())
	s.Events = []scenario.Event{{Op: &scenario.Drain{Nodes: []cluster.NodeID{"n9"}}}}
	must.EqError(t, s.Check(), "case.drain:9: there is no node n9")
}
