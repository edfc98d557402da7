package node

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// nodePluginTable lists the storage plugins of a node.
func nodePluginTable(n *wire.Node, verbose bool) *cli.Table {
	t := cli.NewTable("Plugin", "Type", "Healthy", "Allocation", "Version", "Description")
	for _, p := range n.StoragePlugins {
		if p != nil {
			t.Row(p.ID, p.Type, fmt.Sprint(p.Healthy), cli.ShortID(p.AllocID, verbose), cmp.Or(p.Version, "-"), cmp.Or(p.HealthDescription, "-"))
		}
	}
	return t
}

// mayHaveVolumes reports whether allocations on the node may have volumes: then it is worth asking.
func mayHaveVolumes(n *wire.Node, allocs []*wire.Allocation) bool {
	return len(n.StoragePlugins) > 0 || slices.ContainsFunc(allocs, func(a *wire.Allocation) bool {
		g := alloc.GroupOf(a)
		return g != nil && len(g.Volumes) > 0
	})
}
