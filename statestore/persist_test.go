package statestore_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func persisted(t must.T, s *statestore.Snapshot) []byte {
	var b bytes.Buffer
	must.NoError(t, statestore.Persist(&b, s))
	return b.Bytes()
}

// restored returns a store restored from the persisted s. It reads one byte at a time, as a
// network may deliver them.
func restored(t must.T, s *statestore.Snapshot) *statestore.Store {
	r, err := statestore.Restore(iotest.OneByteReader(bytes.NewReader(persisted(t, s))))
	must.NoError(t, err)
	return r
}

// story returns a world with rows in every table.
func story(t must.T) *world {
	w := newWorld(t)
	w.nodes("n1", "n2", "n3")
	web, disk := w.job(serviceJob("web", 3)), w.job(pluginJob("disk", cluster.JobSystem))
	w.place(web, "n1", nil, "w1", "w2")
	w.place(disk, "n1", nil, "p1")
	w.drain("n2", "d1", cluster.DrainSpec{})
	w.complete("n2", cluster.OutcomeComplete, 0)
	w.request(cluster.DrainUpdate{Node: "n1", Drain: "d2", Spec: &cluster.DrainSpec{Deadline: 1e9}, Key: "k", Meta: map[string]string{"a": "b", "c": "d"}})
	w.mark(cluster.MarkPaced, "w1")
	w.job(serviceJob("web", 4))
	w.plan(&cluster.Plan{
		Eval:    &cluster.Evaluation{ID: "e1", Namespace: "default", JobID: "web", Status: cluster.EvalComplete},
		Stops:   []cluster.PlanStop{{Alloc: "w1", Migrate: true}},
		Places:  []*cluster.Allocation{replacement(web, "w3", "n3", "w1")},
		Blocked: &cluster.Evaluation{ID: "e2", Namespace: "default", JobID: "web", Status: cluster.EvalBlocked, Queued: map[string]int{"g": 1}},
	})
	w.report(cluster.ClientComplete, "w1")
	return w
}

func TestARestoredStoreEqualsTheOriginal(t *testing.T) {
	t.Parallel()
	w := story(t)
	r := restored(t, w.snap())
	must.Eq(t, dump(t, w.snap()), dump(t, r.Snapshot()))
	must.Eq(t, w.index, r.Snapshot().Index())
	must.Eq(t, persisted(t, w.snap()), persisted(t, r.Snapshot()))
	must.Eq(t, w.snap().Node("n1"), r.Snapshot().Node("n1"))
	must.Eq(t, w.snap().Alloc("w2"), r.Snapshot().Alloc("w2"))

	empty := restored(t, statestore.New().Snapshot())
	must.Eq(t, dump(t, statestore.New().Snapshot()), dump(t, empty.Snapshot()))
}

func TestARestoredStoreAcceptsEntries(t *testing.T) {
	t.Parallel()
	w := story(t)
	r := &world{t: t, store: restored(t, w.snap()), index: w.index, now: w.now}
	for _, each := range []*world{w, r} {
		each.report(cluster.ClientFailed, "w2")
		each.request(cluster.DrainUpdate{Node: "n1"})
	}
	must.Eq(t, dump(t, w.snap()), dump(t, r.snap()))
}

func TestRestoringSharesVersionsOfJobs(t *testing.T) {
	t.Parallel()
	s := restored(t, story(t).snap()).Snapshot()
	must.True(t, s.Alloc("w1").Job == s.Alloc("w2").Job)
	must.True(t, s.Alloc("w3").Job == s.Job(cluster.JobKey{Namespace: "default", ID: "web"}))
	must.True(t, s.Alloc("w1").Job != s.Alloc("w3").Job)
}

func TestPersistingKeepsEveryField(t *testing.T) {
	t.Parallel()
	for _, typ := range rowTypes() {
		switch typ {
		case reflect.TypeFor[statestore.Usage](), reflect.TypeFor[statestore.Health](), reflect.TypeFor[statestore.Mark]():
			continue // computed again
		}
		for _, c := range append(changes(typ), change{"nothing", func(reflect.Value) {}}) {
			row := filled(typ)
			c.do(row.Elem())
			if n, ok := row.Interface().(*cluster.Node); ok && n.Draining() {
				n.Drain.NodeID = n.ID // Restore requires it; the records test the field
			}
			switch row := row.Interface().(type) {
			case *statestore.Counters:
				row.Records = 0 // Restore computes it.
			case *statestore.Version:
				row.Version = min(row.Version, cluster.MaxVersion) // Restore refuses a higher one.
			}
			s := storeWith(row).Snapshot()
			r := restored(t, s).Snapshot()
			must.Eq(t, dump(t, s), dump(t, r), must.Sprint(c.path))
		}
	}
}

// A snapshot does not change while it is persisted.
func TestPersistingAnOldSnapshot(t *testing.T) {
	t.Parallel()
	w := story(t)
	s := w.snap()
	before := persisted(t, s)
	w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteJob(serviceJob("web", 1).Key(), true)) })
	must.Eq(t, before, persisted(t, s))
	must.NotEq(t, before, persisted(t, w.snap()))
}

func TestAFailingWriterIsReported(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	s := story(t).snap()
	for size := range persisted(t, s) {
		if size%97 != 0 {
			continue
		}
		must.ErrorIs(t, statestore.Persist(&limited{left: size, err: full}, s), full)
	}
}

type limited struct {
	left int
	err  error
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, l.err
	}
	return len(b), nil
}

//race:skip one goroutine
func TestATruncatedStateIsRefused(t *testing.T) {
	t.Parallel()
	whole := persisted(t, story(t).snap())
	for size := 0; size < len(whole); size += 5 {
		_, err := statestore.Restore(bytes.NewReader(whole[:size]))
		must.ErrorIs(t, err, io.ErrUnexpectedEOF, must.Sprintf("%d of %d bytes", size, len(whole)))
	}
	failing := errors.New("disk on fire")
	_, err := statestore.Restore(io.MultiReader(bytes.NewReader(whole[:100]), iotest.ErrReader(failing)))
	must.ErrorIs(t, err, failing)
}

//race:skip one goroutine
func TestADamagedStateIsRefused(t *testing.T) {
	t.Parallel()
	whole := persisted(t, story(t).snap())
	for i := 0; i < len(whole); i += 5 {
		damaged := slices.Clone(whole)
		damaged[i] ^= 0x10
		_, err := statestore.Restore(bytes.NewReader(damaged))
		must.Error(t, err, must.Sprintf("byte %d", i))
	}
}

// frames builds states byte by byte.
type frames []byte

func stateBegin() frames { return binary.AppendUvarint([]byte("nodedrain state\n"), 1) }

func (f frames) row(kind byte, row ...byte) frames {
	return append(binary.AppendUvarint(append(f, kind), uint64(len(row))), row...)
}

// summed adds the end of a state, with the right checksum.
func (f frames) summed() []byte {
	f = append(f, 8)
	return binary.BigEndian.AppendUint64(f, statestore.Sum(f))
}

func TestInconsistentStatesAreRefused(t *testing.T) {
	t.Parallel()
	_, err := statestore.Restore(bytes.NewReader(stateBegin().summed()))
	must.NoError(t, err)
	text := func(s string) []byte { return append([]byte{0xa0 | byte(len(s))}, s...) }
	counter := func(key string) []byte {
		return slices.Concat([]byte{0x82}, text("Key"), text(key), text("Value"), []byte{0x01})
	}
	r, err := statestore.Restore(bytes.NewReader(stateBegin().row(1, counter("entry")...).row(1, counter("jobs")...).summed()))
	must.NoError(t, err)
	must.Eq(t, 1, r.Snapshot().Index())
	must.Eq(t, 1, r.Snapshot().TableIndex(statestore.TableJobs))

	record := slices.Concat([]byte{0x81}, text("ID"), text("d"))
	node := func(drain ...byte) []byte {
		return slices.Concat([]byte{0x82}, text("ID"), text("n"), text("Drain"), drain)
	}
	running := slices.Concat([]byte{0x82}, text("ID"), text("d"), text("NodeID"), text("n"))
	_, err = statestore.Restore(bytes.NewReader(stateBegin().row(3, node(running...)...).summed()))
	must.NoError(t, err)

	for why, state := range map[string][]byte{
		"there is another drain":                                 stateBegin().row(3, node(running...)...).row(4, record...).summed(),
		`its drain "d" is of node ""`:                            stateBegin().row(3, node(record...)...).summed(),
		`its drain "" is of node ""`:                             stateBegin().row(3, node(0x80)...).summed(),
		"it is not a persisted state":                            []byte("something else altogether"),
		fmt.Sprintf("it needs version %d", cluster.MaxVersion+1): frames(binary.AppendUvarint([]byte("nodedrain state\n"), uint64(cluster.MaxVersion)+1)).summed(),
		"it has version 0":                                       frames(binary.AppendUvarint([]byte("nodedrain state\n"), 0)).summed(),
		"there is no such kind":                                  stateBegin().row(15).summed(),
		"it has no id":                                           stateBegin().row(3, 0x80).summed(),
		`there is no counter "x"`:                                stateBegin().row(1, counter("x")...).summed(),
		"is not above":                                           stateBegin().row(1, counter("jobs")...).row(1, counter("entry")...).summed(),
		"id is not above":                                        stateBegin().row(1, counter("jobs")...).row(1, counter("jobs")...).summed(),
		"kind 1 after one of kind 3":                             stateBegin().row(3, 0x81, 0xa2, 'I', 'D', 0xa1, 'n').row(1, counter("jobs")...).summed(),
		"bytes too many":                                         stateBegin().row(1, append(counter("jobs"), 0)...).summed(),
		"version 1 of 0":                                         stateBegin().row(5, 1).summed(),
		"it has no version":                                      stateBegin().row(5, 0).summed(),
		"it is empty":                                            stateBegin().row(6, 0x80).summed(),
		"no matching struct field":                               stateBegin().row(1, 0x81, 0xa1, 'x', 1).summed(),
		"more than":                                              binary.AppendUvarint(append(stateBegin(), 1), 1<<40),
		"reading a row":                                          binary.AppendUvarint(append(stateBegin(), 1), 1<<20),
	} {
		_, err := statestore.Restore(bytes.NewReader(state))
		must.ErrorContains(t, err, why)
	}
}

// The restore of any bytes gives an error, or a working store that persists to the same state.
func FuzzRestore(f *testing.F) {
	whole := persisted(f, story(f).snap())
	f.Add(whole[:len(whole)-9])
	f.Add([]byte(stateBegin()))
	f.Add([]byte(stateBegin().row(6, 0x81, 0xa5, 'A', 'l', 'l', 'o', 'c', 0x81, 0xa2, 'I', 'D', 0xa1, 'a')))
	f.Fuzz(func(t *testing.T, state []byte) {
		s, err := statestore.Restore(bytes.NewReader(frames(slices.Clone(state)).summed()))
		if err != nil {
			return
		}
		recount(t, s.Snapshot())
		must.Eq(t, dump(t, s.Snapshot()), dump(t, restored(t, s.Snapshot()).Snapshot()))
		w := &world{t: t, store: s, index: s.Snapshot().Index()}
		w.write(func(x *statestore.Txn) {
			for n := range s.Snapshot().Nodes() {
				x.DeleteNodes([]cluster.NodeID{n.ID}, w.now)
			}
			for j := range s.Snapshot().Jobs() {
				must.NoError(t, x.DeleteJob(j.Key(), true))
			}
		})
		recount(t, s.Snapshot())
	})
}

// Advance changes no row of a restored state. It moves the indexes of the state and of all tables,
// so that waiting readers read again.
func TestAdvance(t *testing.T) {
	t.Parallel()
	w := story(t)
	s := restored(t, w.snap())
	const index = 1000
	s.Advance(index, 2)
	after := s.Snapshot()
	must.Eq(t, index, after.Index())
	must.Eq(t, 2, after.ClusterVersion(), must.Sprint("Advance never lowers the cluster version"))
	for _, table := range []string{statestore.TableNodes, statestore.TableDrains, statestore.TableJobs, statestore.TableAllocs, statestore.TableEvals} {
		must.Eq(t, index, after.TableIndex(table))
	}
	must.Eq(t, w.snap().Alloc("w2"), after.Alloc("w2"))
	must.Eq(t, dump(t, after), dump(t, restored(t, after).Snapshot()))
	r := &world{t: t, store: s, index: index, now: w.now}
	r.report(cluster.ClientFailed, "w2")
	must.Eq(t, index+1, r.snap().Alloc("w2").ModifyIndex)
}
