package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/drain"
)

// goesSilent makes a node down, as if its heartbeats had stopped, and returns its allocations when all are lost.
func (c *scriptCluster) goesSilent(ctx context.Context, t *testing.T, id cluster.NodeID) (lost []*cluster.Allocation) {
	t.Helper()
	must.NoError(t, c.await(ctx, func() (bool, error) {
		return c.Server().Store().Snapshot().ClusterVersion() >= cluster.VersionOfConfirmation, nil
	}))
	_, err := c.Server().Requests().UpdateNodeStatus(ctx, id, cluster.NodeDown)
	must.NoError(t, err)
	must.NoError(t, c.await(ctx, func() (bool, error) {
		lost = slices.Collect(c.Server().Store().Snapshot().AllocsByNode(id))
		return !slices.ContainsFunc(lost, func(a *cluster.Allocation) bool { return a.ClientStatus != cluster.ClientLost }), nil
	}))
	return lost
}

// recordOf returns the newest record of the node's drains.
func (c *scriptCluster) recordOf(t *testing.T, id cluster.NodeID) *cluster.Drain {
	t.Helper()
	records := slices.Collect(c.Server().Store().Snapshot().DrainsByNode(id))
	must.Positive(t, len(records))
	return records[len(records)-1]
}

// A regression test: the drain of a node that was lost with its allocations was complete, and a script could turn
// the machine off while its tasks ran. Here the node returns and its client reports the ends one after the other.
func TestMonitor_unconfirmed(t *testing.T) {
	t.Parallel()
	ctx, c := startScriptCluster(t)
	lost := c.goesSilent(ctx, t, pinnedNode)
	must.Len(t, 4, lost)
	code, out, errs := commandAt(ctx, c.api.Address(), "", "node drain -enable -no-deadline "+pinnedNode)
	must.EqOp(t, int(drain.ExitUnconfirmed), code, must.Sprint(out, errs))
	record := c.recordOf(t, pinnedNode)
	must.Eq(t, cluster.OutcomeUnconfirmed, record.Outcome)
	must.StrContains(t, out, ": Outcome: unconfirmed; 4 unconfirmed allocations\n")
	must.StrContains(t, out, fmt.Sprintf(": No allocations are left on node %q, but nothing confirms the end of 4 allocations\n", pinnedNode))
	for _, a := range lost {
		must.StrContains(t, out, fmt.Sprintf(": Unconfirmed: allocation %s of %s.%s\n", a.ID, a.JobID, a.TaskGroup))
	}
	must.StrContains(t, out, "\nTo confirm it, bring the node back: its client reports what has ended\n")
	must.StrHasSuffix(t, "If the machine is off, or no task of them runs: nodedrain drain confirm "+string(record.ID)+"\n", out)
	must.StrNotContains(t, out, "have stopped")

	_, out, _ = commandAt(ctx, c.api.Address(), "", "node explain "+pinnedNode)
	must.StrContains(t, out, "= unconfirmed; 4 unconfirmed allocations\n")
	must.StrContains(t, out, "\nUnconfirmed Allocations\n")
	_, out, _ = commandAt(ctx, c.api.Address(), "", "node status "+pinnedNode)
	must.StrContains(t, out, "= 4 allocations of the last drain; see node explain\n")
	must.StrContains(t, out, "= unconfirmed; 4 unconfirmed allocations; started ", must.Sprint("bug: the last drain was complete"))
	must.StrContains(t, out, "Node drain complete, outcome: unconfirmed; 4 unconfirmed allocations\n")

	for i, a := range lost {
		code, out, _ = commandAt(ctx, c.api.Address(), "", "node drain -monitor "+pinnedNode)
		must.EqOp(t, int(drain.ExitUnconfirmed), code)
		must.StrContains(t, out, string(a.ID))
		_, err := c.writer.ReportAllocs(ctx, []cluster.AllocReport{{Alloc: a.ID, Node: pinnedNode, ClientStatus: cluster.ClientComplete, At: time.Now()}})
		must.NoError(t, err)
		must.Eq(t, 3-i, c.recordOf(t, pinnedNode).CountUnconfirmed())
	}
	code, out, _ = commandAt(ctx, c.api.Address(), "", "node drain -monitor "+pinnedNode)
	must.Zero(t, code)
	must.StrHasPrefix(t, "No drain strategy set\n", out)
	must.StrHasSuffix(t, fmt.Sprintf(": No allocations are left on node %q, which is down\n", pinnedNode), out)
	_, out, _ = commandAt(ctx, c.api.Address(), "", "drain list")
	must.StrContains(t, out, " unconfirmed; confirmed later ")
	_, out, _ = commandAt(ctx, c.api.Address(), "", "node status "+pinnedNode)
	must.StrNotContains(t, out, "Unconfirmed")
}

// The exit code of unconfirmed allocations replaces those of a cancelled drain and of a node that was deleted.
func TestMonitor_unconfirmedWithOtherOutcomes(t *testing.T) {
	t.Parallel()
	ctx, c := startScriptCluster(t)
	c.goesSilent(ctx, t, slowNode)
	// A new allocation keeps the drain from ending.
	_, err := c.Server().Requests().UpdateNodeStatus(ctx, slowNode, cluster.NodeReady)
	must.NoError(t, err)
	must.NoError(t, c.await(ctx, func() (bool, error) {
		for a := range c.Server().Store().Snapshot().AllocsByNode(slowNode) {
			if a.ClientStatus == cluster.ClientRunning {
				return true, nil
			}
		}
		return false, nil
	}))
	for _, test := range []struct {
		outcome string
		end     func() error
	}{
		{"cancelled", func() error {
			_, err := c.writer.UpdateDrain(ctx, cluster.DrainUpdate{Node: slowNode, MarkEligible: true})
			return err
		}},
		{"node gone", func() error { _, err := c.writer.PurgeNode(ctx, slowNode); return err }},
	} {
		code, out, errs := watched(ctx, c, "node drain -enable -no-deadline "+slowNode, "allocations left", func() { must.NoError(t, test.end()) })
		must.EqOp(t, int(drain.ExitUnconfirmed), code, must.Sprint(out, errs))
		must.EqOp(t, cluster.Outcome(test.outcome), c.recordOf(t, slowNode).Outcome)
		must.StrContains(t, out, ": Unconfirmed: allocation ")
	}
	// Bug: the error did not name where the record is.
	code, _, errs := commandAt(ctx, c.api.Address(), "", "node drain -monitor "+slowNode)
	must.One(t, code)
	must.StrHasSuffix(t, "\nIf the node was deleted, the record of its drain is in: nodedrain drain list\n", errs)
}

// A client runs an allocation that the servers do not list. Bug: the advice was to bring the node back, although it
// was connected. Later it was to trust that the node is connected, although its client may be frozen since its last
// heartbeat.
func TestMonitor_unlisted(t *testing.T) {
	t.Parallel()
	ctx, c := startScriptCluster(t)
	must.NoError(t, c.await(ctx, func() (bool, error) {
		return c.Server().Store().Snapshot().ClusterVersion() >= cluster.VersionOfConfirmation, nil
	}))
	n := c.Server().Store().Snapshot().Node(secondNode).Copy()
	n.Unlisted = cluster.NewUnlistedAllocs([]cluster.AllocID{"a1"})
	_, err := c.writer.RegisterNode(ctx, n)
	must.NoError(t, err)
	code, out, errs := commandAt(ctx, c.api.Address(), "", "node drain -enable -force "+secondNode)
	must.EqOp(t, int(drain.ExitUnconfirmed), code, must.Sprint(out, errs))
	must.StrContains(t, out, ": Unconfirmed: allocation a1, which the client may run and the servers do not list\n")
	must.StrHasSuffix(t, "The status of the node is ready. If its client works, it reports when they have ended\n"+
		"If the machine is off, or no task of them runs: nodedrain drain confirm "+string(c.recordOf(t, secondNode).ID)+"\n", out)
}

// A purge of a node on which allocations may run needs an answer, or -yes.
func TestNodePurge(t *testing.T) {
	t.Parallel()
	ctx, c := startScriptCluster(t)
	has := func() bool { return c.Server().Store().Snapshot().Node(pinnedNode) != nil }
	const asks = "Node \"pinned\" is ready, and 4 allocations may still run on it. A purge stops no task: the servers give the allocations up and replace them\n" +
		"Purge node \"pinned\" (7c6b3110)? [y/N] "
	for _, answer := range []string{"n\n", "", "yes\n"} {
		code, out, _ := commandAt(ctx, c.api.Address(), answer, "node purge pinned")
		must.One(t, code, must.Sprint(answer))
		must.StrHasPrefix(t, asks, out)
		must.True(t, has())
	}
	code, out, errs := commandAt(ctx, c.api.Address(), "", "node drain -enable -no-deadline -detach "+pinnedNode)
	must.Zero(t, code, must.Sprint(out, errs))
	code, out, errs = commandAt(ctx, c.api.Address(), "y\n", "node purge "+pinnedNode)
	must.Zero(t, code, must.Sprint(errs))
	must.Eq(t, asks+"Node \""+pinnedNode+"\" purged\n"+
		"Nothing confirms the end of 4 allocations that it may run\n"+
		"Its status was ready. If its client works, it registers the node again and stops what the servers do not list, unless you stop it\n"+
		"Its drain has ended as \"node gone\": nodedrain drain list\n", out)
	must.False(t, has())

	code, _, errs = commandAt(ctx, c.api.Address(), "", "node purge -yes "+pinnedNode)
	must.One(t, code)
	must.StrContains(t, errs, "No node(s) with prefix or id")
	empty := &cluster.Node{ID: "e0000000-0000-0000-0000-000000000001", SecretID: "s", Name: "empty", Status: cluster.NodeDown}
	_, err := c.writer.RegisterNode(ctx, empty)
	must.NoError(t, err)
	_, err = c.Server().Requests().UpdateNodeStatus(ctx, empty.ID, cluster.NodeDown)
	must.NoError(t, err)
	code, out, errs = commandAt(ctx, c.api.Address(), "", "node purge empty")
	must.Zero(t, code, must.Sprint(errs))
	must.Eq(t, "Node \""+string(empty.ID)+"\" purged\n", out, must.Sprint("nothing runs there"))
}

// An operator confirms a drain. The exit code of the answer no is not zero.
func TestDrainConfirm(t *testing.T) {
	t.Parallel()
	ctx, c := startScriptCluster(t)
	c.goesSilent(ctx, t, slowNode)
	code, _, errs := commandAt(ctx, c.api.Address(), "", "node drain -enable -force -detach "+slowNode)
	must.Zero(t, code, must.Sprint(errs))
	must.NoError(t, c.await(ctx, func() (bool, error) { return !c.Server().Store().Snapshot().Node(slowNode).Draining(), nil }))
	id := string(c.recordOf(t, slowNode).ID)
	const node = `node "slow" (51050000)`
	declares := fmt.Sprintf("This declares that 2 allocations of drain %q on %s ended: the machine is off, or no task of them runs\n", id, node)

	for _, answer := range []string{"n\n", "", "yes\n", "perhaps\n"} {
		code, out, errs := commandAt(ctx, c.api.Address(), answer, "drain confirm "+id[:8])
		must.One(t, code, must.Sprint(answer))
		must.StrContains(t, out, declares)
		must.StrContains(t, out, "Are you sure that no task of them runs on "+node+"? [y/N] ")
		must.StrHasSuffix(t, "The drain was not confirmed, and nothing has changed\n", errs)
	}
	must.Eq(t, 2, c.recordOf(t, slowNode).CountUnconfirmed())

	code, out, errs := commandAt(ctx, c.api.Address(), "y\n", "drain confirm "+strings.ToUpper(id))
	must.Zero(t, code, must.Sprint(errs))
	must.StrHasSuffix(t, fmt.Sprintf("Drain %q confirmed\n", id), out)
	record := c.recordOf(t, slowNode)
	must.Eq(t, cluster.OutcomeUnconfirmed, record.Outcome)
	must.Zero(t, record.CountUnconfirmed())
	must.Eq(t, httpapi.AnonymousName, record.Unconfirmed.ConfirmedBy)

	code, out, _ = commandAt(ctx, c.api.Address(), "", "drain confirm -yes "+id)
	must.Zero(t, code)
	must.Eq(t, fmt.Sprintf("Drain %q of %s counts no unconfirmed allocation: nothing has changed\n", id, node), out)
	_, out, _ = commandAt(ctx, c.api.Address(), "", "node explain "+slowNode)
	must.StrContains(t, out, "Outcome   = unconfirmed; confirmed later by an operator\n")
	must.StrNotContains(t, out, httpapi.AnonymousName)
}

// An operator confirms one of two drains of a node. Bug: the other one seemed to be confirmed by clients or by time.
func TestDrainConfirm_anotherDrainOfTheNode(t *testing.T) {
	t.Parallel()
	ctx, c := startScriptCluster(t)
	must.NoError(t, c.await(ctx, func() (bool, error) {
		return c.Server().Store().Snapshot().ClusterVersion() >= cluster.VersionOfData, nil
	}))
	c.goesSilent(ctx, t, slowNode)
	var ids []string
	for range 2 {
		code, _, errs := commandAt(ctx, c.api.Address(), "", "node drain -enable -force -detach "+slowNode)
		must.Zero(t, code, must.Sprint(errs))
		must.NoError(t, c.await(ctx, func() (bool, error) { return !c.Server().Store().Snapshot().Node(slowNode).Draining(), nil }))
		ids = append(ids, string(c.recordOf(t, slowNode).ID))
	}
	code, _, errs := commandAt(ctx, c.api.Address(), "", "drain confirm -yes "+ids[0])
	must.Zero(t, code, must.Sprint(errs))
	other := c.recordOf(t, slowNode).Unconfirmed.Other
	must.NotNil(t, other)
	outcome := "unconfirmed; confirmed later; an operator confirmed 2 with drain " + ids[0][:8]
	for _, test := range []struct{ command, text string }{
		{"drain list", outcome},
		{"drain list -verbose", "2 allocations with drain " + ids[0] + " at "},
		{"node explain " + slowNode, "= " + outcome + "\n"},
		{"node explain " + slowNode, "Confirmed With = 2 allocations with drain " + ids[0] + " at "},
		{"node drain -monitor " + slowNode, ": Outcome: " + outcome + "\n"},
		{"drain confirm " + ids[1], "counts no unconfirmed allocation"},
		{"node explain -json " + slowNode, `"ConfirmedByOther": {`},
	} {
		_, out, _ := commandAt(ctx, c.api.Address(), "", test.command)
		must.StrContains(t, out, test.text, must.Sprint(test.command))
	}
}

// The drain is named by its id or by a prefix that no other drain has.
func TestDrainConfirm_names(t *testing.T) {
	t.Parallel()
	drainOf := func(id, outcome string, unconfirmed int) *wire.Drain {
		return &wire.Drain{ID: id, NodeID: "n1", NodeName: "first", Outcome: outcome, Unconfirmed: unconfirmed, Strategy: &wire.DrainStrategy{}}
	}
	confirmed := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			confirmed = r.URL.Path
			_, _ = w.Write([]byte(`{"Index":7}`))
			return
		}
		_ = json.NewEncoder(w).Encode(wire.DrainList{
			Active: []wire.ActiveDrain{{Drain: drainOf("cc33", "", 0)}},
			Recent: []*wire.Drain{drainOf("aa11", "unconfirmed", 1), drainOf("aa11-2", "node gone", 1), drainOf("bb22", "cancelled", 25), drainOf("dd44", "complete", 0)},
		})
	}))
	t.Cleanup(server.Close)
	for _, test := range []struct{ name, confirms, text string }{
		{"aa11", "aa11", `This declares that 1 allocation of drain "aa11" on node "first" (n1) ended`},
		{"aa11-", "aa11-2", "Drain \"aa11-2\" confirmed\n"},
		{"BB", "bb22", "Unconfirmed: 25 more allocations\n"},
		{"dd44", "", "counts no unconfirmed allocation: nothing has changed\n"},
		{"aa1", "", "Prefix matched multiple drains\n\nDrain   Node  Name   "},
		{"cc", "", `Drain "cc33" of node "first" (n1) has not ended: there is nothing to confirm`},
		{"ee", "", `No drain(s) with prefix or id "ee" found`},
		{"a", "", "Identifier must contain at least two characters."},
	} {
		confirmed = ""
		code, out, errs := commandAt(t.Context(), server.URL, "", "drain confirm -yes "+test.name)
		must.StrContains(t, out+errs, test.text)
		must.EqOp(t, test.confirms == "" && test.name != "dd44", code == 1)
		if test.confirms != "" {
			must.Eq(t, "/v1/drain/"+test.confirms+"/confirm", confirmed)
		} else {
			must.Eq(t, "", confirmed)
		}
	}
}
