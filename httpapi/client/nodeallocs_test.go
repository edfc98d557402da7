package client_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

func alloc(id cluster.AllocID, index uint64, s cluster.ClientStatus) *cluster.Allocation {
	return &cluster.Allocation{ID: id, DesiredStatus: cluster.DesiredRun, ClientStatus: s, ModifyIndex: index, AllocModifyIndex: index}
}

func all(at client.Since, allocs ...*cluster.Allocation) client.Changes {
	c := client.Changes{Since: at, Complete: true, Allocs: allocs}
	if at.ClusterID != "" {
		c.Live = []cluster.AllocID{}
		for _, a := range allocs {
			c.Live = append(c.Live, a.ID)
		}
	}
	return c
}

func merged(t *testing.T, n *client.NodeAllocs, c client.Changes) (changed bool) {
	t.Helper()
	changed = result.Of(n.Merge(c)).OK(t)
	must.Eq(t, c.Since, n.Since())
	return changed
}

func held(n *client.NodeAllocs) (ids []cluster.AllocID) {
	for _, a := range n.All() {
		ids = append(ids, a.ID)
	}
	return ids
}

// A client follows the changes of its node, from the first question to the purge of a job.
func TestNodeAllocs(t *testing.T) {
	t.Parallel()
	var n client.NodeAllocs
	must.Eq(t, client.Since{}, n.Since())
	must.False(t, merged(t, &n, all(client.Since{ClusterID: "c", Index: 5})))
	must.True(t, merged(t, &n, all(client.Since{ClusterID: "c", Index: 9}, alloc("b", 7, cluster.ClientRunning), alloc("a", 8, cluster.ClientPending))))
	must.Eq(t, []cluster.AllocID{"a", "b"}, held(&n))
	b := n.All()[1]

	must.False(t, merged(t, &n, client.Changes{Since: client.Since{ClusterID: "c", Index: 12}}), must.Sprint("nothing has changed, and the next question is about less"))
	must.True(t, merged(t, &n, client.Changes{Since: client.Since{ClusterID: "c", Index: 15}, Allocs: []*cluster.Allocation{
		alloc("a", 13, cluster.ClientLost), alloc("c", 15, cluster.ClientPending), alloc("old", 14, cluster.ClientComplete),
	}}))
	must.Eq(t, []cluster.AllocID{"b", "c"}, held(&n))
	must.True(t, b == n.All()[0], must.Sprint("a row that did not change"))

	must.False(t, merged(t, &n, client.Changes{Since: client.Since{ClusterID: "c", Index: 16}, Live: []cluster.AllocID{"b", "c"}}))
	must.True(t, merged(t, &n, client.Changes{Since: client.Since{ClusterID: "c", Index: 17}, Live: []cluster.AllocID{"c"}}))
	must.Eq(t, []cluster.AllocID{"c"}, held(&n))
	must.True(t, merged(t, &n, client.Changes{Since: client.Since{ClusterID: "c", Index: 18}, Live: []cluster.AllocID{}}))
	must.SliceEmpty(t, n.All())
}

// An answer stops nothing if it is of another cluster, is older than one before, or does not name its
// cluster. The next question is for all.
func TestNodeAllocs_keeps(t *testing.T) {
	t.Parallel()
	var n client.NodeAllocs
	merged(t, &n, all(client.Since{ClusterID: "c", Index: 9}, alloc("a", 7, cluster.ClientRunning)))

	_, err := n.Merge(all(client.Since{ClusterID: "d", Index: 99}))
	must.ErrorIs(t, err, client.ErrOtherCluster)
	must.Eq(t, client.Since{}, n.Since())
	_, err = n.Merge(all(client.Since{ClusterID: "c", Index: 8}))
	must.ErrorIs(t, err, client.ErrOlder)
	_, err = n.Merge(client.Changes{Since: client.Since{ClusterID: "c", Index: 10}, Live: []cluster.AllocID{}})
	must.ErrorContains(t, err, "the request was for all")
	must.Eq(t, []cluster.AllocID{"a"}, held(&n))

	must.True(t, merged(t, &n, all(client.Since{Index: 3}, alloc("b", 3, cluster.ClientRunning), alloc("old", 2, cluster.ClientFailed))))
	must.Eq(t, []cluster.AllocID{"a", "b"}, held(&n), must.Sprint("an older server does not name its cluster"))
	must.True(t, merged(t, &n, all(client.Since{ClusterID: "c", Index: 9}, alloc("b", 3, cluster.ClientRunning))))
	must.Eq(t, []cluster.AllocID{"b"}, held(&n))
}

// Bug: the servers started from an older copy of their data, and every answer was older than the client's. One
// such answer stops nothing; the next one is taken in. Rows of the lost state have indexes that are used again.
func TestNodeAllocs_afterALossOfTheServers(t *testing.T) {
	t.Parallel()
	state := func(index uint64, history string) client.Since {
		return client.Since{ClusterID: "c", Index: index, History: history}
	}
	begin := func() *client.NodeAllocs {
		n := new(client.NodeAllocs)
		merged(t, n, all(state(9, "x"), alloc("a", 7, cluster.ClientRunning), alloc("lost", 9, cluster.ClientRunning)))
		n.Reported([]cluster.AllocReport{{Alloc: "a", ClientStatus: cluster.ClientComplete}}, 12)
		must.Eq(t, []cluster.AllocID{"lost"}, held(n))
		must.Eq(t, state(9, "x"), n.Since())
		return n
	}
	n := begin()
	for range 2 {
		_, err := n.Merge(client.Changes{Since: state(8, "y"), Live: []cluster.AllocID{}})
		must.ErrorIs(t, err, client.ErrOlder, must.Sprint("some allocations may be missing in the answer"))
	}
	_, err := n.Merge(all(state(8, "y"), alloc("a", 7, cluster.ClientRunning)))
	must.ErrorIs(t, err, client.ErrOlder)
	must.Eq(t, []cluster.AllocID{"lost"}, held(n))
	must.Eq(t, client.Since{}, n.Since())
	must.True(t, merged(t, n, all(state(8, "y"), alloc("a", 7, cluster.ClientRunning))))
	must.Eq(t, []cluster.AllocID{"a"}, held(n), must.Sprint("the servers have lost its report"))

	n = begin()
	changed, err := n.Merge(all(state(10, "y"), alloc("a", 7, cluster.ClientRunning)))
	must.NoError(t, err)
	must.False(t, changed)
	must.Eq(t, []cluster.AllocID{"lost"}, held(n))
	must.Eq(t, client.Since{}, n.Since(), must.Sprint("the answer may be older than the report"))
	other := alloc("lost", 9, cluster.ClientRunning)
	must.True(t, merged(t, n, all(state(10, "y"), alloc("a", 7, cluster.ClientRunning), other)))
	must.Eq(t, []cluster.AllocID{"a", "lost"}, held(n))
	must.True(t, other == n.All()[1])
}

// A node without allocations joins another cluster with an answer that has all its allocations, also if
// the index of that cluster is lower.
func TestNodeAllocs_joinsTheNextCluster(t *testing.T) {
	t.Parallel()
	var n client.NodeAllocs
	merged(t, &n, all(client.Since{ClusterID: "c", Index: 9}, alloc("a", 7, cluster.ClientRunning)))
	n.Reported([]cluster.AllocReport{{Alloc: "a", ClientStatus: cluster.ClientComplete}}, 12)
	must.SliceEmpty(t, n.All())
	_, err := n.Merge(client.Changes{Since: client.Since{ClusterID: "d", Index: 5}, Live: []cluster.AllocID{"b"}})
	must.ErrorIs(t, err, client.ErrOtherCluster, must.Sprint("some allocations may be missing in the answer"))
	must.True(t, merged(t, &n, all(client.Since{ClusterID: "d", Index: 5}, alloc("b", 3, cluster.ClientPending))))
	must.Eq(t, []cluster.AllocID{"b"}, held(&n))
	must.False(t, merged(t, &n, client.Changes{Since: client.Since{ClusterID: "d", Index: 6}}))
}

// The servers do not send a client its own reports. An answer that was made before a report does not
// take the report back.
func TestNodeAllocs_Reported(t *testing.T) {
	t.Parallel()
	var n client.NodeAllocs
	at := time.Unix(1000, 0)
	healthy := true
	row := alloc("a", 7, cluster.ClientPending)
	merged(t, &n, all(client.Since{ClusterID: "c", Index: 9}, row, alloc("b", 8, cluster.ClientRunning), alloc("d", 8, cluster.ClientRunning)))
	n.Reported([]cluster.AllocReport{
		{Alloc: "a", ClientStatus: cluster.ClientRunning, ClientDescription: "up", Healthy: &healthy, HealthyAt: at},
		{Alloc: "b", ClientStatus: cluster.ClientComplete},
		{Alloc: "none", ClientStatus: cluster.ClientRunning},
	}, 12)
	must.Eq(t, []cluster.AllocID{"a", "d"}, held(&n))
	must.Eq(t, &cluster.DeploymentStatus{Healthy: &healthy, Timestamp: at, ModifyIndex: 12}, n.All()[0].DeploymentStatus)
	must.Eq(t, cluster.ClientPending, row.ClientStatus, must.Sprint("rows are never written to"))

	stopped := alloc("a", 11, cluster.ClientPending)
	stopped.DesiredStatus = cluster.DesiredStop
	must.True(t, merged(t, &n, client.Changes{Since: client.Since{ClusterID: "c", Index: 11}, Allocs: []*cluster.Allocation{stopped, alloc("b", 10, cluster.ClientRunning)}}))
	must.Eq(t, []cluster.AllocID{"a", "d"}, held(&n))
	must.Eq(t, cluster.DesiredStop, n.All()[0].DesiredStatus)
	must.Eq(t, cluster.ClientRunning, n.All()[0].ClientStatus)
	must.True(t, n.All()[0].JudgedHealthy())

	lost := alloc("a", 13, cluster.ClientLost)
	n.Reported([]cluster.AllocReport{{Alloc: "a", ClientStatus: cluster.ClientRunning}}, 14)
	must.True(t, merged(t, &n, client.Changes{Since: client.Since{ClusterID: "c", Index: 13}, Allocs: []*cluster.Allocation{lost}}))
	must.Eq(t, []cluster.AllocID{"d"}, held(&n), must.Sprint("the servers have ignored the report of what they gave up"))

	must.True(t, merged(t, &n, all(client.Since{ClusterID: "c", Index: 2000}, alloc("b", 8, cluster.ClientRunning))))
	must.Eq(t, []cluster.AllocID{"b"}, held(&n), must.Sprint("an older state was restored, and the report is gone"))
}

// A client that has a row keeps it if it cannot read the newer one, and learns the stop. It reports others as
// failed until the servers have the report.
func TestNodeAllocs_unreadable(t *testing.T) {
	t.Parallel()
	var n client.NodeAllocs
	unread := func(a *cluster.Allocation) client.Unreadable { return client.Unreadable{Alloc: a, Reason: "deep"} }
	named := func() (ids []cluster.AllocID) {
		for _, u := range n.Unreadable() {
			ids = append(ids, u.Alloc.ID)
		}
		return ids
	}
	row := alloc("a", 7, cluster.ClientRunning)
	row.Job = &cluster.Job{ID: "j"}
	merged(t, &n, all(client.Since{ClusterID: "c", Index: 9}, row))
	stopped := alloc("a", 12, cluster.ClientRunning)
	stopped.DesiredStatus = cluster.DesiredStop
	must.True(t, merged(t, &n, client.Changes{Since: client.Since{ClusterID: "c", Index: 12}, Unreadable: []client.Unreadable{
		unread(stopped), unread(alloc("c", 11, cluster.ClientPending)), unread(alloc("b", 12, cluster.ClientPending)), unread(alloc("d", 12, cluster.ClientLost)),
	}}))
	must.Eq(t, []cluster.AllocID{"a"}, held(&n))
	must.Eq(t, cluster.DesiredStop, n.All()[0].DesiredStatus)
	must.Eq(t, row.Job, n.All()[0].Job)
	must.Eq(t, []cluster.AllocID{"b", "c"}, named())

	n.Reported([]cluster.AllocReport{{Alloc: "b", ClientStatus: cluster.ClientFailed}}, 14)
	must.Eq(t, []cluster.AllocID{"c"}, named())
	merged(t, &n, client.Changes{Since: client.Since{ClusterID: "c", Index: 13}, Unreadable: []client.Unreadable{unread(alloc("b", 13, cluster.ClientPending))}})
	must.Eq(t, []cluster.AllocID{"c"}, named(), must.Sprint("the answer is older than the report"))
	merged(t, &n, client.Changes{Since: client.Since{ClusterID: "c", Index: 15}, Live: []cluster.AllocID{"a"}})
	must.SliceEmpty(t, named())
	merged(t, &n, client.Changes{Since: client.Since{ClusterID: "c", Index: 16}, Unreadable: []client.Unreadable{unread(alloc("e", 16, cluster.ClientPending))}})
	merged(t, &n, client.Changes{Since: client.Since{ClusterID: "c", Index: 17}, Allocs: []*cluster.Allocation{alloc("e", 17, cluster.ClientPending)}})
	must.SliceEmpty(t, named())
	must.Eq(t, []cluster.AllocID{"a", "e"}, held(&n))
}

// A node's client names the state that it has. An older server ignores the parameters, and answers with all
// allocations.
func TestNodeSide_Changes(t *testing.T) {
	t.Parallel()
	c, last := answering(t, client.Config{Token: "secret"}, http.StatusOK, map[string]string{"X-Nomad-Index": "17"},
		`{"ClusterID":"c","Index":17,"Complete":false,"Allocs":[{"ID":"a","AllocModifyIndex":16}],"Live":[]}`)
	changes := result.Of(c.NodeSide("n/1").Changes(t.Context(), client.Since{ClusterID: "c", Index: 12}, time.Minute)).OK(t)
	must.Eq(t, request{method: "GET", path: "/v1/node/n%2F1/allocations", token: "secret", query: "changes=c&index=12&wait=60000ms"}, *last)
	must.Eq(t, client.Changes{
		Since: client.Since{ClusterID: "c", Index: 17}, Allocs: []*cluster.Allocation{{ID: "a", AllocModifyIndex: 16}}, Live: []cluster.AllocID{},
	}, changes)

	since := client.Since{ClusterID: "c", Index: 12, History: "a", Shown: wire.StateID{Index: 15, History: "b"}}
	result.Of(c.NodeSide("n1").Changes(t.Context(), since, time.Minute)).OK(t)
	must.Eq(t, "changes=c&history=a&index=12&shown=15-b&wait=60000ms", last.query)

	c, _ = answering(t, client.Config{}, http.StatusOK, nil, `{"ClusterID":"c","Index":17,"Complete":true,"Allocs":[{"ID":"a"}]}`)
	changes = result.Of(c.NodeSide("n1").Changes(t.Context(), client.Since{}, time.Minute)).OK(t)
	must.Eq(t, []cluster.AllocID{"a"}, changes.Live)

	c, last = answering(t, client.Config{}, http.StatusOK, map[string]string{"X-Nomad-Index": "15"}, `[{"ID":"a"},{"ID":"b"}]`)
	changes = result.Of(c.NodeSide("n1").Changes(t.Context(), client.Since{}, time.Minute)).OK(t)
	must.Eq(t, "changes=&wait=60000ms", last.query)
	must.Eq(t, client.Changes{Since: client.Since{Index: 15}, Complete: true, Allocs: []*cluster.Allocation{{ID: "a"}, {ID: "b"}}}, changes)
}

// One allocation that cannot be read does not hide the others. Before, the whole answer was refused, and
// the client stopped and started nothing any more.
func TestNodeSide_Changes_allocationByAllocation(t *testing.T) {
	t.Parallel()
	deep := func(levels int) string { return strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels) }
	job := func(config string) string {
		return `{"TaskGroups":[{"Name":"g","Tasks":[{"Name":"t","Driver":"mock","Config":` + config + `}]}]}`
	}
	rest := `"NodeID":"n1","TaskGroup":"g","DesiredStatus":"run","ClientStatus":"pending","AllocModifyIndex":7`
	for what, test := range map[string]struct{ fields, reason string }{
		"deeper than encoding/json reads":      {`"Job":` + job(deep(10_000)), "Job is nested 10005 levels deep"},
		"the whole answer is too deep":         {`"Job":` + job(deep(9_994)), `Task group "g": Task "t": the config is nested 9994 levels deep, and clients read at most 9900`},
		"a field of another type":              {`"Job":{"TaskGroups":5}`, "Job: json: cannot unmarshal number"},
		"a job that a client cannot have":      {`"Job":{"TaskGroups":[null]}`, "Task group 0 is missing"},
		"a server has left out the job's task": {`"Job":{"ID":"j"},"Unreadable":"task \"t\": deep"`, `task "t": deep`},
		"a field beside the job":               {`"Job":` + job("{}") + `,"TaskStates":{"t":[]}`, "TaskStates: json: cannot unmarshal array"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			answer := `[{"ID":"a"},{` + rest + `,` + test.fields + `,"ID":"b"},{"ID":"c","Job":` + job(deep(9_900)) + `}]`
			for _, complete := range []string{`{"ClusterID":"x","Index":17,"Complete":true,"Allocs":` + answer + `}`, answer} {
				c, _ := answering(t, client.Config{}, http.StatusOK, nil, complete)
				changes := result.Of(c.NodeSide("n1").Changes(t.Context(), client.Since{}, time.Minute)).OK(t)
				must.True(t, changes.Complete)
				if strings.HasPrefix(complete, "{") {
					must.Eq(t, []cluster.AllocID{"a", "b", "c"}, changes.Live)
				}
				must.Len(t, 2, changes.Allocs)
				must.Eq(t, "a", changes.Allocs[0].ID)
				must.Eq(t, "c", changes.Allocs[1].ID)
				must.Eq(t, 9_900*6+1, len(changes.Allocs[1].Job.TaskGroups[0].Tasks[0].Config))
				must.Len(t, 1, changes.Unreadable)
				must.StrContains(t, changes.Unreadable[0].Reason, test.reason)
				must.Eq(t, &cluster.Allocation{
					ID: "b", NodeID: "n1", TaskGroup: "g", DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending, AllocModifyIndex: 7,
				}, changes.Unreadable[0].Alloc)
			}
		})
	}

	c, _ := answering(t, client.Config{}, http.StatusOK, nil, `{"ClusterID":"x","Index":17,"Complete":true,"Allocs":[{"ID":5},null,[],{"ID":"a"}]}`)
	changes := result.Of(c.NodeSide("n1").Changes(t.Context(), client.Since{}, time.Minute)).OK(t)
	must.Len(t, 1, changes.Allocs)
	must.Len(t, 3, changes.Nameless)
	must.StrContains(t, changes.Nameless[0], "allocation 0: ID: json: cannot unmarshal number")
	must.Nil(t, changes.Live, must.Sprint("an allocation without an id may be one that the client runs"))

	for _, text := range []string{``, `{"Allocs":[{"ID":"a"}`, `{"Allocs":5}`, `{"Index":"x"}`, `5`} {
		c, _ = answering(t, client.Config{}, http.StatusOK, nil, text)
		_, err := c.NodeSide("n1").Changes(t.Context(), client.Since{}, time.Minute)
		must.ErrorContains(t, err, "reading the changes", must.Sprint(text))
	}
}
