package client_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The client takes each field of a newer row that it cannot read in full, if a decision needs it, and continues with
// what it has of the others. Bug: no test changed the move of the data, so none failed if the client left it out.
func TestUnreadable_eachField(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	taken := map[string]any{
		"AllocModifyIndex": uint64(1000), "ClientStatus": cluster.ClientUnknown, "ConfirmedAt": at,
		"DeploymentStatus": &cluster.DeploymentStatus{Healthy: new(false)}, "DataOut": &cluster.DataMove{State: cluster.DataKept},
		"DesiredStatus": cluster.DesiredStop, "DesiredDescription": "drained", "DesiredTransition": cluster.DesiredTransition{Migrate: true},
	}
	kept := map[string]string{ // with the reason
		"ID": "it names the row", "Namespace": "it never changes", "Name": "it never changes", "NodeID": "it never changes",
		"NodeName": "it never changes", "JobID": "it never changes", "TaskGroup": "it never changes", "Resources": "it never changes",
		"Job": "what runs", "Devices": "what runs has them", "Ports": "what runs has them", "Cores": "what runs has them",
		"EvalID": "for operators", "PreviousAllocation": "it never changes", "NextAllocation": "for the servers", "Standby": "for the servers", "DeploymentID": "for the servers",
		"StoppedAt": "for the servers", "AwaySince": "for the servers", "EndedAt": "for the servers", "StartTook": "for the servers",
		"CreateTime": "it never changes", "ModifyTime": "for operators", "CreateIndex": "it never changes", "ModifyIndex": "for operators",
		"ClientDescription": "by the client's reports", "TaskStates": "by the client's reports", "VolumeHolds": "by the client's reports",
		"DataIn": "by the client's reports",
	}
	for _, field := range fields(reflect.TypeFor[cluster.Allocation]()) {
		value, is := taken[field]
		if !is {
			must.MapContainsKey(t, kept, field, must.Sprint("a new field needs a case"))
			continue
		}
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			n := newDisks(t)
			n.place(disk("a", ""))
			reaches(n, "a", cluster.ClientRunning, time.Minute)
			n.unreadable = map[cluster.AllocID]string{"a": tooDeep}
			n.index++
			n.allocs[0].AllocModifyIndex = n.index
			w := rowsOf(n)
			row := w.Unreadable[0].Alloc
			row.DesiredStatus = cluster.DesiredRun // an empty one could not be read
			reflect.ValueOf(row).Elem().FieldByName(field).Set(reflect.ValueOf(value))
			n.core.Servers(w)
			n.run(time.Minute)
			must.Eq(t, value, reflect.ValueOf(*n.disk["a"].Alloc).FieldByName(field).Interface())
			must.NotNil(t, n.disk["a"].Alloc.Job)
		})
	}
}

// The client reads the move of an ended allocation's data from a row that it cannot read in full, whether or not it could
// read the row before. It keeps its folders as long as the servers do. Bug: no test had such a row, so none failed if
// the client kept the folders for ever, or removed them at once.
func TestUnreadable_movesOfData(t *testing.T) {
	t.Parallel()
	for _, state := range []cluster.DataState{cluster.DataKept, cluster.DataCopied, cluster.DataGivenUp} {
		for _, readBefore := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s read before=%t", state, readBefore), func(t *testing.T) {
				t.Parallel()
				n := newDisks(t)
				n.keepEnded = -1
				n.startCore()
				n.place(disk("p", ""))
				reaches(n, "p", cluster.ClientRunning, time.Minute)
				ends(n, "p", time.Minute)
				must.True(t, n.servers["p"].DataOut.Kept())
				newer := func() {
					n.index++
					n.allocs[0].AllocModifyIndex = n.index
					n.answer()
					n.run(time.Minute)
				}
				if readBefore {
					newer()
				}
				n.unreadable = map[cluster.AllocID]string{"p": tooDeep}
				n.allocs[0].DataOut = &cluster.DataMove{State: state, Peer: "r"}
				newer()
				must.EqOp(t, state.Ended(), len(n.discarded) == 1)
				if !state.Ended() {
					n.run(client.DefaultDataRetention)
					must.EqOp(t, cluster.DataGivenUp, n.servers["p"].DataOut.StateOf())
				}
			})
		}
	}
}
