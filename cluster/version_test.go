package cluster_test

import (
	"fmt"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

func TestRequire_NamesTheVersionAndTheRemedy(t *testing.T) {
	t.Parallel()
	for v := cluster.MinVersion; v <= cluster.MaxVersion; v++ {
		must.NoError(t, cluster.Require(v))
		must.True(t, cluster.Understood().Contains(v))
	}
	beyond := cluster.MaxVersion + 1
	must.False(t, cluster.Understood().Contains(beyond))
	err := cluster.Require(beyond)
	must.ErrorIs(t, err, cluster.ErrVersion)
	must.EqError(t, err, fmt.Sprintf("cluster version is not understood: it needs version %d, and this server understands %d to %d: "+
		"upgrade this server to a build that understands cluster version %d or later", beyond, cluster.MinVersion, cluster.MaxVersion, beyond))
	err = cluster.Require(cluster.MinVersion - 1)
	must.ErrorIs(t, err, cluster.ErrVersion)
	must.ErrorContains(t, err, "it has version 0, and this server understands "+cluster.Understood().String())
}
