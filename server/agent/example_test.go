package agent_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

// A cluster of one server drains a node that runs nothing.
func ExampleNew() {
	a, err := agent.New(agent.Config{
		Name: "only", BootstrapExpect: 1, // in memory: DataDir is empty
		HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := a.Stop(); err != nil {
			log.Fatal(err)
		}
	}()
	ctx := context.Background()
	if err := a.Ready(ctx); err != nil {
		log.Fatal(err)
	}
	backend := a.Backend()
	if _, err := backend.Writer.RegisterNode(ctx, &cluster.Node{ID: "n1", Status: cluster.NodeReady}); err != nil {
		log.Fatal(err)
	}
	written, err := backend.Writer.UpdateDrain(ctx, cluster.DrainUpdate{Node: "n1", Spec: &cluster.DrainSpec{}})
	if err != nil {
		log.Fatal(err)
	}
	err = backend.Reader.Read(ctx, written.Index, func(s httpapi.State) (uint64, error) {
		if record := s.DrainRecord(written.Drain); record != nil {
			fmt.Println(record.Outcome)
			return s.Index(), nil
		}
		return 0, nil // wait
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: complete
}
