package datamove_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/datamove"
)

// rows are a state.
type rows struct {
	version cluster.Version
	nodes   map[cluster.NodeID]*cluster.Node
	allocs  map[cluster.AllocID]*cluster.Allocation
}

func (r rows) ClusterVersion() cluster.Version                   { return r.version }
func (r rows) Node(id cluster.NodeID) *cluster.Node              { return r.nodes[id] }
func (r rows) Alloc(id cluster.AllocID) *cluster.Allocation      { return r.allocs[id] }
func (r rows) edit(id cluster.AllocID) *cluster.Allocation       { return r.allocs[id] }
func (r rows) status(id cluster.AllocID, s cluster.ClientStatus) { r.allocs[id].ClientStatus = s }

// moving is a state in which "old" has ended on n1 and keeps its data. "next" on n2 replaces it.
func moving() rows {
	job := &cluster.Job{TaskGroups: []*cluster.TaskGroup{{Name: "g", EphemeralDisk: cluster.EphemeralDisk{Migrate: true}}}}
	r := rows{version: cluster.VersionOfData, nodes: map[cluster.NodeID]*cluster.Node{}, allocs: map[cluster.AllocID]*cluster.Allocation{}}
	for _, id := range []cluster.NodeID{"n1", "n2", "n3"} {
		r.nodes[id] = &cluster.Node{ID: id, Name: string(id), Status: cluster.NodeReady}
	}
	r.allocs["old"] = &cluster.Allocation{
		ID: "old", NodeID: "n1", NodeName: "n1", Job: job, TaskGroup: "g", DesiredStatus: cluster.DesiredStop, ClientStatus: cluster.ClientComplete,
		TaskStates: started(), DataOut: &cluster.DataMove{State: cluster.DataKept},
	}
	r.allocs["next"] = &cluster.Allocation{
		ID: "next", NodeID: "n2", NodeName: "n2", Job: job, TaskGroup: "g", DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending,
		PreviousAllocation: "old",
	}
	return r
}

// between puts a replacement on n3 between "old" and "next", which never got the data.
func (r rows) between(s cluster.ClientStatus, in *cluster.DataMove) *cluster.Allocation {
	a := r.allocs["next"].Copy()
	a.ID, a.NodeID, a.NodeName, a.DesiredStatus, a.ClientStatus, a.DataIn = "first", "n3", "n3", cluster.DesiredStop, s, in
	a.TaskStates = &cluster.TaskStates{Tasks: []cluster.TaskState{{Name: "t", State: cluster.TaskPending}}}
	r.allocs["first"] = a
	r.allocs["next"].PreviousAllocation = "first"
	return a
}

func started() *cluster.TaskStates {
	return &cluster.TaskStates{Tasks: []cluster.TaskState{{Name: "init", State: cluster.TaskPending}, {Name: "t", State: cluster.TaskDead, StartedAt: time.Unix(1, 0)}}}
}

func TestFind(t *testing.T) {
	t.Parallel()
	const ready, waits, gone = datamove.Ready, datamove.Waits, datamove.Gone
	pending := &cluster.DataMove{State: cluster.DataWaiting}
	for name, c := range map[string]struct {
		change func(r rows)
		state  datamove.State
		source cluster.AllocID
		why    string
	}{
		"kept":                              {func(rows) {}, ready, "old", ""},
		"a node that drains":                {func(r rows) { r.nodes["n1"].Drain = &cluster.Drain{} }, ready, "old", ""},
		"a disconnected node after the end": {func(r rows) { r.nodes["n1"].Status = cluster.NodeDisconnected }, ready, "old", ""},
		"a node that is down":               {func(r rows) { r.nodes["n1"].Status = cluster.NodeDown }, gone, "old", "allocation old is on node n1, which is down"},
		"a node that is deleted":            {func(r rows) { delete(r.nodes, "n1") }, gone, "old", "allocation old was on node n1, which is deleted"},

		"the old allocation runs": {func(r rows) { r.edit("old").ClientStatus, r.edit("old").DataOut = cluster.ClientRunning, nil }, waits, "old", "allocation old on node n1 has not ended"},
		"it has not started": {func(r rows) {
			r.edit("old").ClientStatus, r.edit("old").DataOut, r.edit("old").TaskStates = cluster.ClientPending, nil, nil
		},
			waits, "old", "allocation old on node n1 has not ended"},
		"it runs on a node that is down": {func(r rows) {
			r.edit("old").ClientStatus, r.edit("old").DataOut = cluster.ClientRunning, nil
			r.nodes["n1"].Status = cluster.NodeDown
		}, gone, "old", "allocation old is on node n1, which is down"},
		"it is unknown":    {func(r rows) { r.edit("old").ClientStatus, r.edit("old").DataOut = cluster.ClientUnknown, nil }, gone, "old", "allocation old is on node n1, which is disconnected"},
		"it is lost":       {func(r rows) { r.edit("old").ClientStatus, r.edit("old").DataOut = cluster.ClientLost, nil }, gone, "old", "allocation old is lost"},
		"it kept no data":  {func(r rows) { r.edit("old").DataOut = nil }, gone, "old", "allocation old has ended, and its client has kept no data"},
		"without states":   {func(r rows) { r.edit("old").DataOut, r.edit("old").TaskStates = nil, nil }, gone, "old", "allocation old has ended, and its client has kept no data"},
		"another took it":  {func(r rows) { r.edit("old").DataOut = &cluster.DataMove{State: cluster.DataCopied, Peer: "x"} }, gone, "old", "allocation old has no data any more: allocation x has it"},
		"it was given up":  {func(r rows) { r.edit("old").DataOut = &cluster.DataMove{State: cluster.DataGivenUp} }, gone, "old", "allocation old has no data any more: it was given up"},
		"it was collected": {func(r rows) { delete(r.allocs, "old") }, gone, "", "allocation old does not exist any more"},
		"it never started, and replaces none": {func(r rows) { r.edit("old").DataOut, r.edit("old").TaskStates = nil, &cluster.TaskStates{} },
			gone, "", "no earlier allocation has data"},
		"a first allocation": {func(r rows) { r.edit("next").PreviousAllocation = "" }, gone, "", "no earlier allocation has data"},

		"one between never got the data":        {func(r rows) { r.between(cluster.ClientComplete, pending) }, ready, "old", ""},
		"one between was lost before":           {func(r rows) { r.between(cluster.ClientLost, pending) }, ready, "old", ""},
		"one between never reported":            {func(r rows) { r.between(cluster.ClientLost, nil).TaskStates = nil }, ready, "old", ""},
		"one between may still copy":            {func(r rows) { r.between(cluster.ClientPending, pending) }, waits, "first", "allocation first on node n3 has not ended"},
		"one between, whose node went down":     {func(r rows) { r.between(cluster.ClientPending, pending); r.nodes["n3"].Status = cluster.NodeDown }, waits, "first", "allocation first on node n3 has not ended"},
		"one between is unknown":                {func(r rows) { r.between(cluster.ClientUnknown, pending) }, gone, "first", "allocation first is on node n3, which is disconnected"},
		"one between got the data and was lost": {func(r rows) { r.between(cluster.ClientLost, &cluster.DataMove{State: cluster.DataCopied}) }, gone, "first", "allocation first is lost"},
		"one between started without it": {func(r rows) {
			a := r.between(cluster.ClientFailed, &cluster.DataMove{State: cluster.DataGivenUp})
			a.TaskStates, a.DataOut = started(), &cluster.DataMove{State: cluster.DataKept}
		}, ready, "first", ""},
		"one between got it and never started": {func(r rows) {
			r.between(cluster.ClientComplete, &cluster.DataMove{State: cluster.DataCopied}).DataOut = &cluster.DataMove{State: cluster.DataKept}
		}, ready, "first", ""},
		"a cycle": {func(r rows) { r.between(cluster.ClientComplete, pending).PreviousAllocation = "first" }, gone, "", "64 replacements in a row have ended without the data"},

		"the replacement must stop":      {func(r rows) { r.edit("next").DesiredStatus = cluster.DesiredStop }, waits, "", "allocation next has ended or must stop"},
		"the replacement is lost":        {func(r rows) { r.status("next", cluster.ClientLost) }, waits, "", "allocation next has ended or must stop"},
		"the replacement is deleted":     {func(r rows) { delete(r.allocs, "next") }, waits, "", "allocation next does not exist"},
		"the replacement has the data":   {func(r rows) { r.edit("next").DataIn = &cluster.DataMove{State: cluster.DataCopied} }, gone, "", "the move of the data has ended: copied"},
		"the replacement copies":         {func(r rows) { r.edit("next").DataIn = &cluster.DataMove{State: cluster.DataCopying} }, ready, "old", ""},
		"its group no longer moves data": {func(r rows) { r.edit("next").Job = &cluster.Job{} }, gone, "", "the group of the allocation does not move data"},
		"the record has lost its job":    {func(r rows) { r.edit("next").Job = nil }, gone, "", "the group of the allocation does not move data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := moving()
			c.change(r)
			found := datamove.Find(r, "next")
			must.Eq(t, c.state, found.State)
			must.Eq(t, c.why, found.Why)
			if c.source == "" {
				must.Nil(t, found.Alloc)
				return
			}
			must.Eq(t, c.source, found.Alloc.ID)
			must.True(t, found.Node == r.Node(found.Alloc.NodeID))
		})
	}
	old := moving()
	old.version--
	must.Eq(t, datamove.Source{State: gone, Why: "the cluster version has no moves of data"}, datamove.Find(old, "next"))
}
