package statestore_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func TestClusterVersion_IsOneUntilAnEntryRaisesIt(t *testing.T) {
	t.Parallel()
	w := story(t)
	before := w.snap()
	must.Eq(t, 1, before.ClusterVersion())
	must.StrNotContains(t, dump(t, before), "&{Version:1}", must.Sprint("a state of version 1 has no row for it"))

	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.MaxVersion) })
	must.Eq(t, cluster.MaxVersion, w.snap().ClusterVersion())
	must.Eq(t, 1, before.ClusterVersion())
	must.StrContains(t, dump(t, w.snap()), fmt.Sprintf("&{Version:%d}", cluster.MaxVersion))

	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(1) })
	must.Eq(t, cluster.MaxVersion, w.snap().ClusterVersion(), must.Sprint("the version never decreases"))
}

func TestClusterVersion_ASnapshotBeginsWithIt(t *testing.T) {
	t.Parallel()
	w := story(t)
	must.True(t, strings.HasPrefix(string(persisted(t, w.snap())), "nodedrain state\n\x01"))
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(2) })
	must.True(t, strings.HasPrefix(string(persisted(t, w.snap())), "nodedrain state\n\x02"))
	r := restored(t, w.snap())
	must.Eq(t, 2, r.Snapshot().ClusterVersion())
	must.Eq(t, dump(t, w.snap()), dump(t, r.Snapshot()))
}

func TestClusterVersion_ASnapshotOfANewerVersionIsRefused(t *testing.T) {
	t.Parallel()
	state := persisted(t, story(t).snap())
	state[len("nodedrain state\n")] = byte(cluster.MaxVersion + 1)
	_, err := statestore.Restore(bytes.NewReader(state))
	must.ErrorIs(t, err, cluster.ErrVersion)
	must.ErrorContains(t, err, fmt.Sprintf("upgrade this server to a build that understands cluster version %d or later", cluster.MaxVersion+1))
}
