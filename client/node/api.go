package node

import (
	"context"

	"github.com/seed-f9cf0b39/nodedrain/client/hoststats"
	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
)

// nodeapiOptions returns the options of the handler that answers the servers' requests.
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
