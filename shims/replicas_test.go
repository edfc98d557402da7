package shims_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// tally counts the events of random histories, so that a test can check that all cases occurred.
type tally map[string]int

func (c tally) count(r shims.Response) {
	switch r := r.(type) {
	case shims.Refused:
		c["refused"]++
	case shims.Skipped:
		c["skipped"]++
	case shims.MarksApplied:
		for _, m := range r.Accepted {
			c["marked "+m.Class.String()]++
		}
		c["mark refused"] += len(r.Refused)
	case shims.CompletionsApplied:
		for _, e := range r.Ended {
			c["ended "+string(e.Outcome)]++
		}
		c["completion refused"] += len(r.Refused)
	case shims.PlanApplied:
		c["placed"] += len(r.Accepted.Places)
		c["stopped"] += len(r.Accepted.Stops)
		c["plan refused"] += len(r.Refused)
	case shims.DrainRequestApplied:
		c["withdrawn"] += r.Withdrawn
		c["drain updated"]++
	case shims.NodesDeregistered:
		c["missing node"] += len(r.Missing)
	}
}

func (c tally) mustHave(t testing.TB, what ...string) {
	t.Helper()
	for _, w := range what {
		must.Positive(t, c[w], must.Sprintf("%q never happened: %v", w, c))
	}
}

// The same log gives the same state and the same responses on every server, including one restored
// from a snapshot in the middle.
//
//race:skip one goroutine
func TestReplicas_EqualLogsGiveEqualStates(t *testing.T) {
	t.Parallel()
	total := make(tally)
	for seed := range uint64(16) {
		log := randomLog(t, seed, 250)
		replicas := [3]*shims.FSM{}
		for i := range replicas {
			replicas[i] = shims.NewFSM(shims.FSMConfig{})
		}
		for i, data := range log {
			if i%125 == 60 { // restart this one from a snapshot
				snapshot := persist(t, replicas[2])
				replicas[2] = shims.NewFSM(shims.FSMConfig{})
				restore(t, replicas[2], snapshot)
				must.True(t, bytes.Equal(snapshot, persist(t, replicas[2])), must.Sprint("equal states have equal snapshots"))
			}
			var responses [3]shims.Response
			for r, fsm := range replicas {
				var err error
				responses[r], err = fsm.ApplyEntry(uint64(i+1), data)
				must.NoError(t, err)
			}
			total.count(responses[0])
			for r := 1; r < 3; r++ {
				if !reflect.DeepEqual(responses[0], responses[r]) {
					t.Fatalf("seed %d, entry %d, %s: replica 0 answers\n%+v\nreplica %d\n%+v", seed, i+1, shims.MessageType(data[0]), responses[0], r, responses[r])
				}
			}
			if i%125 != 124 && i != len(log)-1 {
				continue
			}
			want := dump(t, replicas[0])
			for r := 1; r < 3; r++ {
				if got := dump(t, replicas[r]); got != want {
					t.Fatalf("seed %d, after entry %d: replica %d has a different state", seed, i+1, r)
				}
			}
		}
	}
	total.mustHave(t, "refused", "skipped", "mark refused", "completion refused", "placed", "stopped", "plan refused", "withdrawn", "drain updated", "missing node",
		"marked paced", "marked free", "marked gone", "marked stage", "marked deadline", "marked forced",
		"ended complete", "ended deadline reached", "ended forced")
	must.Zero(t, total["marked none"])
	t.Log(total)
}

// Later entries do not change an entry or a state that an observer keeps.
func TestReplicas_ReadRowsNeverChange(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		var kept []shims.Applied
		var texts []string
		fsm := shims.NewFSM(shims.FSMConfig{OnApply: func(a shims.Applied) {
			if a.Index%20 == 0 && a.Message != nil {
				kept = append(kept, a)
				texts = append(texts, textOf(t, a))
			}
		}})
		for i, data := range randomLog(t, seed, 300) {
			_, err := fsm.ApplyEntry(uint64(i+1), data)
			must.NoError(t, err)
		}
		must.Positive(t, len(kept))
		for i, a := range kept {
			must.True(t, texts[i] == textOf(t, a))
		}
	}
}

// textOf is an entry's message and the state after it.
func textOf(t testing.TB, a shims.Applied) string {
	t.Helper()
	return string(encode(t, a.Message)) + dumpOf(t, a.After)
}
