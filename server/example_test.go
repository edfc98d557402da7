package server_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Three servers in one process drain a node that runs nothing.
func ExampleGroup() {
	group, err := server.NewGroup(server.GroupConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Shutdown()

	var leader *server.Server
	var drain cluster.DrainID
	err = group.Do(context.Background(), func(ctx context.Context, s *server.Server) error {
		if _, err := s.Requests().RegisterNode(ctx, &cluster.Node{ID: "n1", Status: cluster.NodeReady}); err != nil {
			return err
		}
		updated, err := s.Requests().UpdateDrain(ctx, cluster.DrainUpdate{Node: "n1", Spec: &cluster.DrainSpec{}, Key: "once"})
		leader, drain = s, updated.Drain
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	var record *cluster.Drain
	_, err = leader.Store().Blocking(context.Background(), 1, func(state *statestore.Snapshot) (uint64, error) {
		if record = state.DrainRecord(drain); record == nil {
			return 0, nil
		}
		return record.EndIndex, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(record.Outcome)
	// Output: complete
}
