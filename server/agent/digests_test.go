package agent_test

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/telemetry"
)

// logBuffer keeps what a server logs.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logBuffer) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// comparing starts three servers that compare their states often, with their logs and metrics.
func comparing(t *testing.T) (*servers, map[string]*logBuffer) {
	logs := map[string]*logBuffer{"s1": {}, "s2": {}, "s3": {}}
	w := newServers(t, 3, func(c *agent.Config) {
		var err error
		c.CompareInterval = 100 * time.Millisecond
		c.Logger = hclog.New(&hclog.LoggerOptions{Name: c.Name, Level: hclog.Info, Output: logs[c.Name]})
		c.Metrics, err = telemetry.New(telemetry.Options{})
		must.NoError(t, err)
		t.Cleanup(c.Metrics.Close)
	})
	for i := range 5 {
		register(t, api(t, w.agents[0]), testNode(i))
	}
	return w, logs
}

// plant changes one byte of one row in the state of one server.
func plant(t *testing.T, a *agent.Agent) {
	t.Helper()
	store := a.Server().Store()
	txn := store.Begin(store.Snapshot().Index())
	n := testNode(3)
	n.Name = "N3"
	must.NoError(t, txn.UpsertNode(n, time.Time{}))
	txn.Commit()
}

// series is the value of a metric of a server.
func series(t *testing.T, a *agent.Agent, name string) string {
	t.Helper()
	answer := result.Of(http.Get("http://" + a.HTTPAddr() + "/v1/metrics?format=prometheus")).OK(t)
	defer answer.Body.Close()
	var text bytes.Buffer
	result.Of(text.ReadFrom(answer.Body)).OK(t)
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text.String())
	must.SliceLen(t, 2, found, must.Sprint(name))
	return found[1]
}

// stateOf is the state of a server in the leader's list of servers.
func stateOf(t *testing.T, a *agent.Agent, name string) string {
	t.Helper()
	list, err := api(t, a).Servers().RaftConfiguration(t.Context())
	if err != nil {
		return err.Error() // between two leaders
	}
	for _, s := range list.Servers {
		if s.ID == name {
			return s.State
		}
	}
	return "unknown server"
}

// Servers with the same state report that. When one byte of one server's state is another, all of these
// report it: that server's log and the leader's, the metric, and the list of servers. That server gives
// leadership away, now and whenever it is elected.
func TestDigests(t *testing.T) {
	t.Parallel()
	for name, leads := range map[string]bool{"a follower": false, "the leader": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, logs := comparing(t)
			for _, a := range w.agents {
				eventually(t, "a comparison of "+a.Name(), func() bool { return stateOf(t, w.agents[0], a.Name()) == "same" })
				eventually(t, "a compared index", func() bool { return series(t, a, "nodedrain_state_compared_index") != "0" })
				must.Eq(t, "0", series(t, a, "nodedrain_state_differs"))
			}
			bad := w.leader()
			if !leads {
				bad = w.others(bad)[0]
			}
			good := w.others(bad)
			plant(t, bad)

			eventually(t, "the list of servers", func() bool { return stateOf(t, good[0], bad.Name()) == "differs" })
			for _, a := range good {
				eventually(t, "the state of the others", func() bool { return stateOf(t, good[0], a.Name()) == "same" })
			}
			eventually(t, "the metric", func() bool { return series(t, bad, "nodedrain_state_differs") == "1" })
			const text = "a server has another state than the majority, and must not lead"
			must.True(t, logs[bad.Name()].has(text))
			eventually(t, "the leader's log", func() bool { return logs[good[0].Name()].has(text) || logs[good[1].Name()].has(text) })
			eventually(t, "another leader", func() bool { return !bad.Server().Leads() && (good[0].Server().Leads() || good[1].Server().Leads()) })

			// That leader is lost. Two servers are left, and the bad one votes: if it is elected, it
			// gives leadership away at once.
			leader := w.leader(good...)
			last := w.others(leader)[0]
			if last == bad {
				last = w.others(leader)[1]
			}
			w.network.isolate(leader, true)
			eventually(t, "the last good server leads", func() bool { return last.Backend().Reader.Consistent(t.Context()) == nil })
			must.False(t, bad.Server().Leads())
			register(t, api(t, last), testNode(9))
		})
	}
}

// Two servers with different states have no majority. All report that, and one of them continues to lead.
func TestDigests_withoutAMajority(t *testing.T) {
	t.Parallel()
	w, logs := comparing(t)
	leader := w.leader()
	away, bad := w.others(leader)[0], w.others(leader)[1]
	must.NoError(t, stop(away))
	plant(t, bad)
	for _, a := range []*agent.Agent{leader, bad} {
		eventually(t, "the list of servers", func() bool { return stateOf(t, leader, a.Name()) == "undecided" })
		eventually(t, "the log", func() bool { return logs[a.Name()].has("no majority of them has the same") })
		eventually(t, "the metric", func() bool { return series(t, a, "nodedrain_state_differs") == "1" })
	}
	register(t, api(t, leader), testNode(9))
}
