package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// pauser pauses and resumes drains by the requests of this build, which the API's library does not have.
type pauser struct{ servers *servers }

// pauseRequest is [client.PauseDrains] or [client.ResumeDrains].
type pauseRequest func(ctx context.Context, c *client.Client, node string) (*wire.DrainPauseResponse, client.Answer, error)

// at is a client of one server.
func (u pauser) at(p *serverProcess) *client.Client {
	u.servers.t.Helper()
	c, err := client.New(client.Config{Address: "http://" + p.HTTPAddr})
	must.NoError(u.servers.t, err)
	return c
}

// ask makes a request of the leader, again until it is answered: there may be an election.
func (u pauser) ask(what string, request func(c *client.Client) error) {
	u.servers.t.Helper()
	u.servers.await(what, func() bool {
		err := request(u.at(u.servers.leader()))
		must.False(u.servers.t, client.Refused(err), must.Sprint(what, ": ", err))
		return err == nil
	})
}

// change pauses or resumes the drain of a node, or all for an empty node.
func (u pauser) change(request pauseRequest, node string) (answer *wire.DrainPauseResponse) {
	u.servers.t.Helper()
	u.ask("the answer to a pause or a resume", func(c *client.Client) (err error) {
		answer, _, err = request(u.servers.t.Context(), c, node)
		return err
	})
	return answer
}

// refused checks that servers of this build refuse each request because of the cluster version.
func (u pauser) refused(version cluster.Version, node string, by ...*serverProcess) {
	t := u.servers.t
	t.Helper()
	why := fmt.Sprintf("needs version %d, and the cluster has version %d: upgrade every server of the cluster", cluster.VersionOfPauses, version)
	for _, p := range by {
		for _, request := range []pauseRequest{client.PauseDrains, client.ResumeDrains} {
			for _, of := range []string{node, ""} {
				var err error
				u.servers.await("the answer of "+p.Name, func() bool {
					_, _, err = request(t.Context(), u.at(p), of)
					return err == nil || client.Refused(err) || strings.Contains(err.Error(), why)
				})
				must.ErrorContains(t, err, why, must.Sprintf("%s, node %q", p.Name, of))
			}
		}
	}
	u.ask("the pause of all", func(c *client.Client) error {
		pause, _, err := client.DrainPause(t.Context(), c, client.Query{})
		must.Nil(t, pause)
		return err
	})
}

// drain requests a drain.
func (u pauser) drain(node string, deadline time.Duration) {
	u.servers.t.Helper()
	request, key := wire.DrainRequest{NodeID: node, DrainSpec: &wire.DrainSpec{Deadline: deadline}}, uuid.NewString()
	u.ask("the answer to a drain request", func(c *client.Client) error {
		_, _, err := c.UpdateDrain(u.servers.t.Context(), node, request, key)
		return err
	})
}

// read is the drain of a node.
func (u pauser) read(node string) (drain *wire.Drain) {
	u.servers.t.Helper()
	u.ask("the drain of a node", func(c *client.Client) error {
		d, _, err := c.NodeDrain(u.servers.t.Context(), node, client.Query{})
		if err == nil {
			drain = d.Drain
		}
		return err
	})
	must.NotNil(u.servers.t, drain)
	return drain
}

// ends waits for the outcome of a node's drain.
func (u pauser) ends(node string, want cluster.Outcome) {
	u.servers.t.Helper()
	var outcome string
	u.servers.await("the end of the drain of "+node, func() bool {
		outcome = u.read(node).Outcome
		return outcome != ""
	})
	must.EqOp(u.servers.t, string(want), outcome)
}

// held checks that a drain runs, that the pauses hold it, and that it has marked nothing.
func (u pauser) held(node, by string) *wire.Drain {
	u.servers.t.Helper()
	d := u.read(node)
	must.EqOp(u.servers.t, "", d.Outcome)
	must.EqOp(u.servers.t, by, d.PausedBy)
	must.MapEmpty(u.servers.t, d.Marked)
	return d
}

// across pauses all drains and one of them, and resumes them after a change of the leader. Two of the nodes have
// allocations, and drain: one of them is held, and the forced drain of the other shows that the new leader drains.
func (u pauser) across(nodes []string, deadline time.Duration, changeLeader func()) {
	s := u.servers
	s.t.Helper()
	node, forced := u.occupied(nodes)
	u.change(client.PauseDrains, "")
	u.drain(node, deadline)
	began := u.held(node, wire.PausedByAll)
	u.change(client.PauseDrains, node)
	changeLeader()
	u.drain(forced, -1)
	u.ends(forced, cluster.OutcomeForced)
	u.held(node, wire.PausedByBoth)

	must.SliceEmpty(s.t, u.change(client.ResumeDrains, "").Drains, must.Sprint("the drain has a pause of its own"))
	paused := u.held(node, wire.PausedByDrain)
	must.EqOp(s.t, began.Strategy.StartedAt, paused.PausedSince)
	must.EqOp(s.t, began.Strategy.ForceDeadline, paused.Strategy.ForceDeadline)
	before := time.Now()
	resumed := u.change(client.ResumeDrains, node)
	after := time.Now()
	must.SliceLen(s.t, 1, resumed.Drains)
	end := resumed.Drains[0].ForceDeadline.Time
	// The drain was paused from its begin on, so all of its time is left.
	must.Between(s.t, before.UnixNano(), end.Add(-deadline).UnixNano(), after.UnixNano())
	u.ends(node, cluster.OutcomeComplete)
	s.t.Logf("a pause of all and one of a drain were held by two leaders, and moved the deadline by %s",
		end.Sub(began.Strategy.ForceDeadline.Time).Round(time.Millisecond))
}

// occupied is two nodes on which web runs.
func (u pauser) occupied(nodes []string) (one, other string) {
	t := u.servers.t
	t.Helper()
	var found []string
	for _, node := range nodes {
		var allocs []*wire.Allocation
		u.ask("the allocations of a node", func(c *client.Client) (err error) {
			allocs, _, err = c.NodeAllocations(t.Context(), node, client.Query{})
			return err
		})
		for _, a := range allocs {
			if a.JobID == "web" && a.ClientStatus == "running" && a.DesiredStatus == "run" {
				found = append(found, node)
				break
			}
		}
	}
	must.GreaterEq(t, 2, len(found))
	return found[0], found[1]
}
