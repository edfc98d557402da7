package watchdog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

func TestParseArgs(t *testing.T) {
	t.Parallel()
	expected := config{dir: "/data/watchdog", number: 7}
	c, err := parseArgs(expected.args()[1:])
	must.NoError(t, err)
	must.Eq(t, expected, c)
	for text, args := range map[string][]string{
		"speaks protocol 1, not 2": {"-protocol", "2", "-new", "x"},
		"needs a folder":           {"-protocol", "1"},
		"takes flags only":         append(expected.args()[1:], "more"),
		"not defined":              append(expected.args()[1:], "-more"),
	} {
		_, err := parseArgs(args)
		must.ErrorContains(t, err, text)
	}
}

// A damaged note is removed, and one that was not complete is ignored.
func TestNotes_Damaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	none, err := Notes(filepath.Join(dir, "missing"))
	must.NoError(t, err)
	must.Len(t, 0, none)
	expected := guard.Stopped{Alloc: "a/b", BootID: "boot", After: time.Minute, Signals: map[string]time.Duration{"web": 5}}
	content, err := json.Marshal(&expected)
	must.NoError(t, err)
	must.NoError(t, writeNote(dir, expected.Alloc, content))
	for name, content := range map[string]string{"x.stopped": "{", "y.stopped": "{}", "z.stopped.new": "{", "lock": "{"} {
		must.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	all, err := Notes(dir)
	must.NoError(t, err)
	must.Eq(t, []guard.Stopped{expected}, all)
	left, err := os.ReadDir(dir)
	must.NoError(t, err)
	must.Len(t, 3, left)
}

// A watchdog gets the TTL of the last contact, and stops no task before it has passed. Bug: no test had a contact
// with a TTL.
func TestMessage_ttlOfTheContact(t *testing.T) {
	t.Parallel()
	var w guard.Watch
	for _, sent := range []message{
		{Put: &guard.Guard{Alloc: "a", After: time.Second, Tasks: []guard.Task{{Name: "t"}}}},
		contactMessage(guard.Contact{Sent: time.Hour, TTL: 20 * time.Second}),
	} {
		b, err := json.Marshal(sent)
		must.NoError(t, err)
		var m message
		must.NoError(t, json.Unmarshal(b, &m))
		m.apply(&w)
	}
	w.Gone()
	acts, next := w.Step(time.Hour + 19*time.Second)
	must.SliceEmpty(t, acts)
	must.EqOp(t, time.Hour+20*time.Second, next)
	acts, _ = w.Step(next)
	must.SliceNotEmpty(t, acts)
}

// Any message of a client can be stepped.
func FuzzMessage(f *testing.F) {
	for _, m := range []message{
		{Begin: true}, {Contact: 5}, {Remove: "a"},
		{Put: &guard.Guard{Alloc: "a", After: 1, Tasks: []guard.Task{{Name: "t", Group: "a.t", Phase: cluster.StopMain, KillTimeout: 1}}}},
	} {
		b, err := json.Marshal(m)
		must.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m message
		if json.Unmarshal(b, &m) != nil || m.check() != nil {
			return
		}
		var w guard.Watch
		m.apply(&w)
		w.Gone()
		_, first := w.Step(m.Contact)
		must.GreaterEq(t, m.Contact, first)
		w.Step(guard.Never)
	})
}

func FuzzNote(f *testing.F) {
	f.Add([]byte(`{"Alloc":"a","BootID":"b","After":60000000000,"Signals":{"web":5}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := parseNote(b); err == nil {
			must.NotEq(t, "", s.Alloc)
			must.StrContains(t, s.Reason(), s.After.String())
		}
	})
}
