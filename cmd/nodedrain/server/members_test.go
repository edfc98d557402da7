package server

import (
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// began is the time of the tests.
var began = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// A dead server is no follower, and an older build does not report how far it is.
func TestMemberTable(t *testing.T) {
	t.Parallel()
	leads := wire.RaftServer{ID: "s1", Address: "a:1", Leader: true, Voter: true, Alive: true, Started: wire.NewTime(began), Build: "1.2.3", AppliedIndex: 40, MinVersion: 1, MaxVersion: 2}
	follows := wire.RaftServer{ID: "s2", Address: "b:1", Voter: true, Alive: true, Started: wire.NewTime(began), Build: "1.2.3", AppliedIndex: 37, Behind: 3, MinVersion: 1, MaxVersion: 2}
	older := wire.RaftServer{ID: "s3", Address: "c:1", Voter: true, Alive: true, Behind: 40, MinVersion: 1, MaxVersion: 1}
	dead := wire.RaftServer{ID: "s4", Address: "d:1", Voter: true, Behind: 40}
	silent := wire.RaftServer{ID: "s5", Address: "e:1", LastContact: wire.NewTime(began.Add(55 * time.Minute))}
	var out strings.Builder
	memberTable([]wire.RaftServer{leads, follows, older, dead, silent}, began.Add(time.Hour)).Write(&out)
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{
		"Name Address State Voter Started Behind Build Versions",
		"s1 a:1 leader true 1h00m ago 0 1.2.3 1 to 2",
		"s2 b:1 follower true 1h00m ago 3 1.2.3 1 to 2",
		"s3 c:1 follower true unknown unknown unknown 1 to 1",
		"s4 d:1 no answer, since unknown true unknown unknown unknown unknown",
		"s5 e:1 no answer for 5m0s false unknown unknown unknown unknown",
	} {
		must.Eq(t, want, strings.Join(strings.Fields(lines[i]), " "))
	}

	must.Eq(t, "", leaderless([]wire.RaftServer{leads, follows, dead}))
	gone := leads
	gone.Alive = false
	must.Eq(t, "No leader: 1 of 3 voters answer, and a leader needs 2. Start the servers that do not answer.",
		leaderless([]wire.RaftServer{gone, follows, dead, {ID: "s5", Alive: true}}))
	must.Eq(t, "No leader: 2 of 3 voters answer, and a leader needs 2. They elect one soon if they reach each other.",
		leaderless([]wire.RaftServer{gone, follows, older}))
}

// A server with another state is named below the list, with the remedy.
func TestStateLines(t *testing.T) {
	t.Parallel()
	must.SliceEmpty(t, stateLines([]wire.RaftServer{{ID: "s1", State: "same", StateIndex: 812}, {ID: "s2"}}))
	must.Eq(t, []string{
		`Server s3 has another state than the majority at index 812, and does not lead. Stop it and run "nodedrain server recover -discard".`,
	}, stateLines([]wire.RaftServer{{ID: "s1", State: "same", StateIndex: 812}, {ID: "s3", State: "differs", StateIndex: 812}}))
	must.Eq(t, []string{
		"Server s1 has a state at index 9 that no majority has. Start the servers that are down.",
		"Server s2 has a state at index 9 that no majority has. Start the servers that are down.",
	}, stateLines([]wire.RaftServer{{ID: "s1", State: "undecided", StateIndex: 9}, {ID: "s2", State: "undecided", StateIndex: 9}}))
}
