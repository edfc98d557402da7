package statestore_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// storeWith returns a store with one row.
func storeWith(row reflect.Value) *statestore.Store {
	s := statestore.New()
	s.InsertRow(row.Interface())
	return s
}

func TestTheDumpShowsEveryFieldOfEveryTable(t *testing.T) {
	t.Parallel()
	// Two tables have allocations, and the ledger has rows of four types.
	must.Len(t, len(statestore.TableNames())-1+3, rowTypes(), must.Sprint("a table without a row type here is not tested"))
	for _, typ := range rowTypes() {
		paths := map[string]string{dump(t, storeWith(filled(typ)).Snapshot()): "unchanged"}
		for _, c := range changes(typ) {
			if strings.Contains(c.path, "ID other") && strings.Count(c.path, ".") == 1 {
				continue // the change makes a different row
			}
			row := filled(typ)
			c.do(row.Elem())
			text := dump(t, storeWith(row).Snapshot())
			must.Eq(t, "", paths[text], must.Sprintf("%s has the same dump", c.path))
			paths[text] = c.path
		}
		must.Greater(t, typ.NumField(), len(paths))
	}
}

func TestTheDumpIgnoresTimeZones(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 1)
	here := &cluster.Evaluation{ID: "e", CreateTime: at.In(time.FixedZone("here", 7200))}
	there := &cluster.Evaluation{ID: "e", CreateTime: at.UTC()}
	must.Eq(t, dump(t, storeWith(reflect.ValueOf(here)).Snapshot()), dump(t, storeWith(reflect.ValueOf(there)).Snapshot()))
}

// The dumps of two stores are equal even if their rows share versions of jobs in different ways.
func TestTheDumpIgnoresSharedVersions(t *testing.T) {
	t.Parallel()
	shared, apart := statestore.New(), statestore.New()
	j := serviceJob("web", 3)
	for _, id := range []string{"a1", "a2"} {
		a, b := place(j, id, "n1"), place(j, id, "n1")
		a.Job, b.Job = j, j.Copy()
		shared.InsertRow(a)
		apart.InsertRow(b)
	}
	must.Eq(t, dump(t, shared.Snapshot()), dump(t, apart.Snapshot()))
	must.Eq(t, persisted(t, shared.Snapshot()), persisted(t, apart.Snapshot()))
}
