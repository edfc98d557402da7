package agent

import (
	"context"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
)

// CallController calls a controller as the leader does.
func CallController(ctx context.Context, a *Agent, controller cluster.NodeID, call *volumes.Call) error {
	_, err := controllers{a}.Call(ctx, controller, call)
	return err
}
