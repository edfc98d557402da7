package dev

import (
	"context"
	"fmt"
	"io"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient/remote"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// simulatedClass is the class of simulated nodes.
const simulatedClass = "simulated"

// startSimulated starts simulated clients, which end with a context.
func (c *Cluster) startSimulated(life context.Context, log io.Writer) {
	nodes := simulatedNodes("node", simulatedClass, c.config.Nodes)
	for _, n := range nodes {
		c.ids = append(c.ids, n.ID)
	}
	c.running.Go(func() {
		c.failed <- remote.Run(life, remote.Config{
			Addresses: []string{c.URL()}, Token: c.nodeToken.Reveal(), Nodes: nodes,
			Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: log}),
		})
	})
}

// simulatedNodes returns nodes with the names PREFIX-1, PREFIX-2 and so on. Their ids and secrets are
// derived from the names, so that a later process continues with the same nodes.
func simulatedNodes(prefix, class string, number int) (nodes []*cluster.Node) {
	for i := range number {
		name := fmt.Sprintf("%s-%d", prefix, i+1)
		n := &cluster.Node{
			ID:       cluster.NodeID(uuid.NewSHA1(uuid.NameSpaceURL, []byte("node "+name)).String()),
			SecretID: uuid.NewSHA1(uuid.NameSpaceURL, []byte("secret of "+name)).String(),
			Name:     name, Datacenter: "dc1", NodeClass: class, HTTPAddr: "127.0.0.1:0", Status: cluster.NodeReady,
			Attributes: map[string]string{"os.name": "simulated"},
			Resources:  cluster.Resources{CPU: 16_000, MemoryMB: 32_768, DiskMB: 100_000},
		}
		n.Canonicalize()
		nodes = append(nodes, n)
	}
	return nodes
}
