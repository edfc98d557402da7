package statestore_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// newGoldens makes tests write missing golden files. No test changes an existing one.
var newGoldens = flag.Bool("new-goldens", false, "write the golden files of a new cluster version")

// fullState is a state with a row of each type in which every field is set.
func fullState() *statestore.Snapshot {
	s := statestore.New()
	for _, typ := range rowTypes() {
		switch typ {
		case reflect.TypeFor[statestore.Usage](), reflect.TypeFor[statestore.Health](), reflect.TypeFor[statestore.Mark]():
			continue // Restore computes them.
		}
		row := filled(typ)
		switch row := row.Interface().(type) {
		case *cluster.Node:
			row.Drain.NodeID, row.Drain.ID = row.ID, "running"
		case *statestore.Counters:
			row.Records = 1
		case *statestore.Version:
			row.Version = cluster.MaxVersion
		}
		s.InsertRow(row.Interface())
	}
	return s.Snapshot()
}

// stateGolden is the path of a persisted state of a cluster version.
func stateGolden(version int) string {
	return filepath.Join("testdata", "format", fmt.Sprint("v", version), "state")
}

// formatOf is the version at the beginning of a persisted state.
func formatOf(state []byte) int { return int(state[len("nodedrain state\n")]) }

func TestFormat_TheSnapshotChangesOnlyWithAVersion(t *testing.T) {
	t.Parallel()
	state := persisted(t, fullState())
	file := stateGolden(formatOf(state))
	want, err := os.ReadFile(file)
	if os.IsNotExist(err) && *newGoldens {
		must.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.NoError(t, os.WriteFile(file, state, 0o644))
		return
	}
	must.NoError(t, err, must.Sprint("no golden file: see \"A new cluster version\" in shims/doc.go"))
	if !bytes.Equal(want, state) {
		t.Fatalf("the encoding of the state has changed, and cluster version %d has not. An older server cannot restore such a snapshot.\n"+
			"See \"A new cluster version\" in shims/doc.go. First difference at byte %d: was %q, is %q",
			formatOf(state), firstDifference(want, state), around(want, firstDifference(want, state)), around(state, firstDifference(want, state)))
	}
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// around returns the bytes around an offset.
func around(b []byte, at int) []byte { return b[max(0, at-20):min(len(b), at+40)] }

func TestFormat_EverySnapshotStaysReadable(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "format", "v*", "state"))
	must.NoError(t, err)
	must.SliceContains(t, files, stateGolden(1))
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			must.NoError(t, err)
			must.Eq(t, file, stateGolden(formatOf(want)))
			restored, err := statestore.Restore(bytes.NewReader(want))
			must.NoError(t, err)
			must.True(t, bytes.Equal(want, persisted(t, restored.Snapshot())), must.Sprint("its encoding has changed"))
		})
	}
}
