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

// listed is the answer of a server.
func listed(servers ...wire.RaftServer) *wire.RaftConfiguration {
	return &wire.RaftConfiguration{Servers: servers}
}

// A dead server is no follower, and an older build does not report how far it is.
func TestMemberTable(t *testing.T) {
	t.Parallel()
	leads := wire.RaftServer{ID: "s1", Address: "a:1", Leader: true, Voter: true, Alive: true, Started: wire.NewTime(began), Build: "1.2.3", AppliedIndex: 40, MinVersion: 1, MaxVersion: 2}
	follows := wire.RaftServer{ID: "s2", Address: "b:1", Voter: true, Alive: true, Started: wire.NewTime(began), Build: "1.2.3", AppliedIndex: 37, Behind: 3, MinVersion: 1, MaxVersion: 2}
	older := wire.RaftServer{ID: "s3", Address: "c:1", Voter: true, Alive: true, Behind: 40, MinVersion: 1, MaxVersion: 1}
	dead := wire.RaftServer{ID: "s4", Address: "d:1", Voter: true, Behind: 40}
	silent := wire.RaftServer{ID: "s5", Address: "e:1", LastContact: wire.NewTime(began.Add(55 * time.Minute))}
	var out strings.Builder
	memberTable(listed(leads, follows, older, dead, silent), began.Add(time.Hour)).Write(&out)
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

	must.Eq(t, "", leaderless(listed(leads, follows, dead)))
	gone := leads
	gone.Alive = false
	must.Eq(t, "This server has no leader: it reaches 1 of 3 voters, and a leader needs 2. Start the servers that do not answer. "+
		"If they run, this one is cut off: use -address of another server.",
		leaderless(listed(gone, follows, dead, wire.RaftServer{ID: "s5", Alive: true})))
	must.Eq(t, "This server has no leader: it reaches 2 of 3 voters, and a leader needs 2. They elect one soon if they reach each other.",
		leaderless(listed(gone, follows, older)))
}

// A server of an older build reports which server leads, and not which ones answer. The command once reported all
// of them as dead.
func TestMemberTable_older(t *testing.T) {
	t.Parallel()
	servers := []wire.RaftServer{{ID: "s1", Address: "a:1", Leader: true, Voter: true}, {ID: "s2", Address: "b:1", Voter: true}}
	var out strings.Builder
	memberTable(listed(servers...), began).Write(&out)
	lines := strings.Split(out.String(), "\n")
	must.Eq(t, "s1 a:1 leader true unknown unknown unknown unknown", strings.Join(strings.Fields(lines[1]), " "))
	must.Eq(t, "s2 b:1 unknown true unknown unknown unknown unknown", strings.Join(strings.Fields(lines[2]), " "))
	must.Eq(t, "", leaderless(listed(servers...)))
	servers[0].Leader = false
	must.Eq(t, "This server has no leader.", leaderless(listed(servers...)))
}

// A removal once required no confirmation, and two of them left a cluster of three with one server.
func TestRemovalText(t *testing.T) {
	t.Parallel()
	server := func(name, flags string) wire.RaftServer {
		return wire.RaftServer{ID: name, Voter: !strings.Contains(flags, "n"), Alive: strings.ContainsAny(flags, "al"), Leader: strings.Contains(flags, "l")}
	}
	dead := server("s2", "")
	dead.LastContact = wire.NewTime(began)
	for name, test := range map[string]struct {
		servers []wire.RaftServer
		want    string
	}{
		"one of three": {[]wire.RaftServer{server("s1", "l"), server("s2", "a"), server("s3", "a")},
			`Server "s2" answers. Without it the cluster has 2 voters, 2 of them running. It then tolerates 0 failures.`},
		"one of four": {[]wire.RaftServer{server("s1", "l"), server("s2", "a"), server("s3", "a"), server("s4", "a")},
			`Server "s2" answers. Without it the cluster has 3 voters, 3 of them running. It then tolerates 1 failure.`},
		"the leader": {[]wire.RaftServer{server("s1", "a"), server("s2", "l")},
			`Server "s2" leads. Without it the cluster has 1 voter, 1 of them running. It then tolerates 0 failures.`},
		"a dead one": {[]wire.RaftServer{server("s1", "l"), dead, server("s3", "a"), server("s4", "n")},
			`Server "s2" does not answer. Without it the cluster has 2 voters, 2 of them running. It then tolerates 0 failures.`},
		"a live one beside a dead one": {[]wire.RaftServer{server("s1", "l"), server("s2", "a"), server("s3", "")},
			`Server "s2" answers. Without it the cluster has 2 voters, 1 of them running. It needs 2, so it would have no leader.`},
		"by an older server": {[]wire.RaftServer{server("s1", ""), server("s2", ""), server("s3", "")},
			`Server "s2": without it the cluster has 2 voters. If all of them run, it tolerates 0 failures.`},
	} {
		must.Eq(t, test.want, removalText(listed(test.servers...), "s2"), must.Sprint(name))
	}
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
