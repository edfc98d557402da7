package main

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// A server with another state is named below the list, with the remedy.
func TestStateLines(t *testing.T) {
	t.Parallel()
	must.SliceEmpty(t, stateLines([]wire.RaftServer{{ID: "s1", State: "same", StateIndex: 812}, {ID: "s2"}}))
	must.Eq(t, []string{
		`Server s3 has another state than the majority at index 812, and does not lead. Stop it and run "nodedrain server recover -discard".`,
	}, stateLines([]wire.RaftServer{{ID: "s1", State: "same", StateIndex: 812}, {ID: "s3", State: "differs", StateIndex: 812}}))
	must.Eq(t, []string{
		"Server s1 has a state at index 9 that no majority has. Start the servers that are absent.",
		"Server s2 has a state at index 9 that no majority has. Start the servers that are absent.",
	}, stateLines([]wire.RaftServer{{ID: "s1", State: "undecided", StateIndex: 9}, {ID: "s2", State: "undecided", StateIndex: 9}}))
}
