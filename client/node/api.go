package node

import (
	"context"

	"github.com/seed-f9cf0b39/nodedrain/client/hoststats"
	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
)

// nodeapiOptions are what the handler of the servers' requests needs of this node.
func (n *Node) nodeapiOptions() nodeapi.Options {
	return nodeapi.Options{
		Logger:  n.logger,
		Dirs:    n.shell.tasks.dirs,
		Roster:  n.shell.roster,
		Tasks:   n.operators(),
		Devices: n.shell.devices.stats,
		Storage: &controllers{n.shell.storage},
		Host: func(ctx context.Context) (*hoststats.Sample, error) {
			return hoststats.Take(ctx, hoststats.Options{DataDir: n.home.path})
		},
	}
}
