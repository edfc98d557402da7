package statestore

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// UpdateAllocsFromClient applies what clients report of their allocations. The
// client owns the status, its description, the verdict on health and ModifyTime;
// everything else stays, and the nodes table is not touched.
//
// A report changes nothing, and hinders no other, if its allocation is unknown
// or another node's; if its status is not a client's to give: lost and unknown
// are the servers'; if it says nothing new; or if it would bring an allocation
// that has ended back: what was complete or failed stays as it is, and what was
// given up as lost can only still say how it ended.
func (t *Txn) UpdateAllocsFromClient(reports []cluster.AllocReport) {
	edits := t.editAllocs()
	for _, r := range reports {
		a := edits.look(r.Alloc)
		if a == nil || a.NodeID != r.Node || !mayReport(a, r.ClientStatus) {
			continue
		}
		verdict := newVerdict(a, r)
		if a.ClientStatus == r.ClientStatus && a.ClientDescription == r.ClientDescription && !verdict {
			continue
		}
		c := edits.edit(a, r.At.UTC())
		c.ClientStatus, c.ClientDescription = r.ClientStatus, r.ClientDescription
		if verdict {
			t.judge(c, r)
		}
	}
	edits.write()
}

// mayReport reports whether a client may give the allocation the status.
func mayReport(a *cluster.Allocation, s cluster.ClientStatus) bool {
	switch s {
	case cluster.ClientComplete, cluster.ClientFailed:
		return !a.ClientTerminal() || a.ClientStatus == cluster.ClientLost
	case cluster.ClientPending, cluster.ClientRunning:
		return !a.ClientTerminal()
	}
	return false
}

// newVerdict reports whether the report judges an allocation that had no
// verdict, or had the other one.
func newVerdict(a *cluster.Allocation, r cluster.AllocReport) bool {
	return r.Healthy != nil && (!a.HasVerdict() || a.JudgedHealthy() != *r.Healthy)
}

func (t *Txn) judge(a *cluster.Allocation, r cluster.AllocReport) {
	healthy := *r.Healthy
	if a.DeploymentStatus == nil {
		a.DeploymentStatus = &cluster.DeploymentStatus{}
	}
	a.DeploymentStatus.Healthy = &healthy
	a.DeploymentStatus.Timestamp = r.HealthyAt.UTC()
	a.DeploymentStatus.ModifyIndex = t.written.index
}
