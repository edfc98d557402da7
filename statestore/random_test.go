package statestore_test

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// entry is one entry of a random log. Its effect depends only on the state. It returns the result,
// and a pointer to the object that it passed to the store.
type entry struct {
	name string
	do   func(x *statestore.Txn, at time.Time) (answer string, object any)
}

// GoString describes the entry in the output of a failing test.
func (e entry) GoString() string { return e.name }

// The same log gives the same state on every server, including one that is restored in the middle,
// and one whose callers overwrite the objects that they passed. Objects read before do not change,
// and all derived rows are right.
//
//race:skip one goroutine
func TestARandomLogOnThreeStores(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		log := append([]entry{{"beginning", begin}}, rapid.SliceOfN(entries(), 1, 60).Draw(t, "log")...)
		restoreAt := rapid.IntRange(0, len(log)).Draw(t, "restore at")
		one, two, three := statestore.New(), statestore.New(), statestore.New()
		type read struct {
			snap *statestore.Snapshot
			dump string
		}
		var reads []read
		at := time.Date(2026, 5, 6, 7, 8, 9, 123_456_789, time.UTC)
		for i, e := range log {
			if i == restoreAt {
				three = restored(t, three.Snapshot())
			}
			at = at.Add(time.Second)
			index := uint64(10 + 3*i)
			first := apply(one, index, e, at, overwrite)
			must.Eq(t, first, apply(two, index, e, at, keep))
			must.Eq(t, first, apply(three, index, e, at, keep))
			if s := one.Snapshot(); i%4 == 0 {
				reads = append(reads, read{s, dump(t, s)})
				recount(t, s)
			}
		}
		must.Eq(t, dump(t, one.Snapshot()), dump(t, two.Snapshot()))
		must.Eq(t, dump(t, one.Snapshot()), dump(t, three.Snapshot()))
		must.True(t, bytes.Equal(persisted(t, one.Snapshot()), persisted(t, three.Snapshot())))
		recount(t, one.Snapshot())
		recount(t, three.Snapshot())
		for _, r := range reads {
			must.Eq(t, r.dump, dump(t, r.snap), must.Sprint("a write changed an object already read"))
		}
	})
}

func apply(s *statestore.Store, index uint64, e entry, at time.Time, after func(reflect.Value)) string {
	x := s.Begin(index)
	defer x.Abort()
	answer, object := e.do(x, at)
	after(reflect.ValueOf(object).Elem())
	x.Commit()
	return e.name + ": " + answer
}

func keep(reflect.Value) {}

// overwrite zeroes everything that can be reached from a value.
func overwrite(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.SetZero()
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			overwrite(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			overwrite(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			overwrite(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			v.SetMapIndex(k, reflect.Zero(v.Type().Elem()))
		}
	default:
		v.SetZero()
	}
}
