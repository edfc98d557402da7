package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/clitest"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// serve serves a list of servers, and counts removals.
func serve(t *testing.T, servers *wire.RaftConfiguration) (url string, removals *atomic.Int32) {
	t.Helper()
	removals = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			removals.Add(1)
			return
		}
		w.Header().Set("X-Nomad-KnownLeader", strconv.FormatBool(leaderless(servers) == ""))
		_ = json.NewEncoder(w).Encode(servers)
	}))
	t.Cleanup(s.Close)
	return s.URL, removals
}

// three returns a list of three servers, of which the first leads or only the last answers.
func three(led bool) *wire.RaftConfiguration {
	servers := &wire.RaftConfiguration{Cluster: "c"}
	for i, name := range []string{"s1", "s2", "s3"} {
		servers.Servers = append(servers.Servers, wire.RaftServer{ID: name, Voter: true, Alive: led || i == 2, Leader: led && i == 0})
	}
	return servers
}

// The removal of a running voter needs an answer, or -yes.
func TestRemove_confirmation(t *testing.T) {
	t.Parallel()
	url, removals := serve(t, three(true))
	run := clitest.Program(cli.Program{"server remove": Remove})
	code, out, errs := run(t.Context(), "server remove -address "+url+" s2")
	must.One(t, code)
	must.Eq(t, `Server "s2" answers. Without it the cluster has 2 voters, 2 of them running. It then tolerates 0 failures.
Remove server "s2" from the cluster? [y/N] Cancelling server removal
`, out)
	must.Eq(t, "nothing was changed: the input ended before an answer; -yes skips the question\n", errs)
	must.EqOp(t, 0, removals.Load())

	code, out, errs = run(t.Context(), "server remove -yes -address "+url+" s2")
	must.Zero(t, code, must.Sprint(errs))
	must.Eq(t, "Server \"s2\" is no longer a member of the cluster\n", out)
	must.EqOp(t, 1, removals.Load())
}

// A server that is cut off reports the others as dead. The command uses the next address.
func TestMembers_nextAddress(t *testing.T) {
	t.Parallel()
	cut, _ := serve(t, three(false))
	led, _ := serve(t, three(true))
	run := clitest.Program(cli.Program{"server members": Members})
	for address, leaderless := range map[string]bool{cut: true, cut + "," + led: false, led + "," + cut: false, cut + "," + cut: true} {
		code, out, errs := run(t.Context(), "server members -address "+address)
		must.Zero(t, code, must.Sprint(errs))
		const line = "\nThis server has no leader: it reaches 1 of 3 voters, and a leader needs 2. "
		if leaderless {
			must.StrContains(t, out, line)
		} else {
			must.StrNotContains(t, out, line)
			must.StrContains(t, out, "leader")
		}
	}
}

// Errors of the configuration name flags. They once named fields of the library.
func TestServer_errorsNameFlags(t *testing.T) {
	t.Parallel()
	run := clitest.Program(cli.Program{"server": Command})
	for line, want := range map[string]string{
		"-http 0.0.0.0:4646": "every host could drain nodes at 0.0.0.0:4646: set -tokens, or -ca with -cert and -key, or -insecure to permit that",
		"-http nowhere":      "-http: address nowhere: missing port in address",
		"-bind nowhere":      "-bind: address nowhere: missing port in address",
		"-advertise nowhere": `-advertise is "nowhere" and must be host:port`,
	} {
		code, _, errs := run(t.Context(), "server -bootstrap-expect 1 -data-dir "+t.TempDir()+" "+line)
		must.One(t, code, must.Sprint(line))
		must.Eq(t, want+"\n", errs)
	}
}
