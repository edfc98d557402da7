package client

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// receiveUnreadable handles an allocation that the client cannot read. A new one fails at once: its report
// lets the servers replace it, and a drain of the node does not wait for it.
func receiveUnreadable(c *Core, u Unreadable) {
	if a := c.alloc(u.Alloc.ID); a != nil {
		updateUnreadable(a, u)
		return
	}
	alloc := u.Alloc
	if alloc.NodeID == "" {
		alloc.NodeID = c.options.Node // the servers send only allocations of the node
	}
	switch {
	case alloc.NodeID != c.options.Node:
		return
	case alloc.ClientTerminal():
		if alloc.DataOut.Kept() {
			forsaken(c, alloc, "")
		}
		return
	}
	c.options.Logger.Error("the client cannot read an allocation, and reports it as failed", "alloc", alloc.ID, "job", alloc.JobID, "why", u.Reason)
	alloc.Job, alloc.Devices, alloc.Ports, alloc.Cores = nil, nil, nil, nil
	a := newAllocRunner(c, &Record{
		Alloc: alloc, Unreadable: u.Reason, ClusterID: c.agreement.cluster, BootID: c.options.BootID, Received: c.now.Boot, ClientStatus: cluster.ClientPending,
	})
	a.listed = true
	c.add(a)
	a.touch()
}

// updateUnreadable handles a newer version of the allocation that the client cannot read. The client
// continues the allocation by its record, and stops it if the servers stop it.
func updateUnreadable(a *allocRunner, u Unreadable) {
	if a.orphan() {
		a.list(cluster.IsListed(u.Alloc))
		a.pending, a.pendingUnreadable, a.decided = u.Alloc, u.Reason, true
		return
	}
	known := *a.rec.Alloc
	known.AllocModifyIndex, known.ClientStatus, known.DeploymentStatus = u.Alloc.AllocModifyIndex, u.Alloc.ClientStatus, u.Alloc.DeploymentStatus
	known.ConfirmedAt, known.DataOut = u.Alloc.ConfirmedAt, u.Alloc.DataOut
	if u.Alloc.DesiredStatus != "" {
		known.DesiredStatus, known.DesiredDescription = u.Alloc.DesiredStatus, u.Alloc.DesiredDescription
		known.DesiredTransition = u.Alloc.DesiredTransition
	}
	if known.AllocModifyIndex != a.rec.Alloc.AllocModifyIndex && a.rec.Unreadable == "" {
		a.core.options.Logger.Warn("the client cannot read the newer version of an allocation, and continues the allocation at the version that it has",
			"alloc", known.ID, "why", u.Reason)
	}
	a.update(&known)
}
