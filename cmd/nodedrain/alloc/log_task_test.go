package alloc

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

func TestLastLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		lines  int64
		want   string
		enough bool
	}{
		{"", 0, "", true},
		{"", 1, "", false},
		{"a", 1, "a", false},
		{"a\n", 1, "a\n", false},
		{"a\nb", 1, "b", true},
		{"a\nb\n", 1, "b\n", true},
		{"a\nb\n", 2, "a\nb\n", false},
		{"a\nb\nc\n", 2, "b\nc\n", true},
		{"a\n\n\n", 2, "\n\n", true},
		{"\n", 1, "\n", false},
	} {
		tail, enough := lastLines([]byte(c.text), c.lines)
		must.Eq(t, c.want, string(tail), must.Sprintf("%q %d", c.text, c.lines))
		must.Eq(t, c.enough, enough, must.Sprintf("%q %d", c.text, c.lines))
	}
}

func TestOver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status, state string
		want          bool
	}{
		{"running", "running", false}, {"pending", "pending", false}, {"unknown", "running", false},
		{"running", "dead", true}, {"complete", "running", true}, {"failed", "", true}, {"lost", "running", true},
	} {
		a := &wire.Allocation{ClientStatus: c.status, TaskStates: map[string]*wire.TaskState{"web": {State: c.state}}}
		must.Eq(t, c.want, Over(a, "web"), must.Sprintf("%+v", c))
	}
	must.False(t, Over(&wire.Allocation{ClientStatus: "running"}, "web"))
}
