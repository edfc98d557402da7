package world

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/datamove"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/transfer"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// cores are the nodes with real clients. Their clocks are right.
type cores struct {
	fleet *fleet
	begun bool
	// nodes are in the order of their ids.
	nodes []*coreNode
	// at is the earliest next time of a node; zero is never.
	at time.Time
	// answers are the nodes whose clients get an answer of the servers in the next step.
	answers []cluster.NodeID
	outbox  []outgoing
	// hanging are reports of nodes that are cut off. They fail when their node reaches the servers
	// again.
	hanging []outgoing
	// requests are requests for claims that wait for the servers, and refused those whose writes were
	// not applied.
	requests, refused []*claimRequest
	// transfers move the data of ephemeral disks.
	transfers *transfer.Servers
	// targets are the changes of targets of checks, in their order.
	targets []scenario.TargetChange
}

// clusterID is the id of the cluster in the answers of the servers.
const clusterID = "world"

// noDriver is the name of the driver of each node. Tasks of scenarios name no driver.
const noDriver = ""

// machineAge is how long the doubles of the machines run before the beginning. A machine has run for up
// to maxUptime before that, so that a time of its boot clock is far in the future after a reboot.
const (
	machineAge = 2 * time.Hour
	maxUptime  = 400 * 24 * time.Hour
)

// outgoing are reports of a node that wait for the next entry.
type outgoing struct {
	node    *coreNode
	reports []cluster.AllocReport
	reply   func(taken bool)
}

func newCores(f *fleet) *cores {
	c := &cores{fleet: f}
	c.transfers = transfer.New(transfer.Options{
		View: func() datamove.View { return f.world.Truth().WorkView() },
		Node: func(id cluster.NodeID) *machine.Node {
			if n := c.node(id); n != nil {
				return n.machine
			}
			return nil
		},
		Do: func(id cluster.NodeID, do func()) error { return c.node(id).disturb(do) },
		Takes: func(a *cluster.Allocation) time.Duration {
			return max(leastCopy, c.node(a.NodeID).allocs[a.ID].behaviour.Copy)
		},
		Fault: func(to cluster.NodeID) transfer.Fault { return c.node(to).transferFault() },
	})
	return c
}

// leastCopy is the shortest time of a copy.
const leastCopy = 50 * time.Millisecond

// changed queues answers of the servers.
func (c *cores) changed(nodes ...cluster.NodeID) {
	c.transfers.Changed()
	for _, id := range nodes {
		if !slices.Contains(c.answers, id) {
			c.answers = append(c.answers, id)
		}
	}
}

// node returns a node, or nil.
func (c *cores) node(id cluster.NodeID) *coreNode {
	if i, found := c.find(id); found {
		return c.nodes[i]
	}
	return nil
}

func (c *cores) find(id cluster.NodeID) (int, bool) {
	return slices.BinarySearchFunc(c.nodes, id, func(n *coreNode, id cluster.NodeID) int { return strings.Compare(string(n.id), string(id)) })
}

// contact returns when the servers last answered the node.
func (c *cores) contact(n *coreNode) time.Time {
	now := c.fleet.world.now
	switch {
	case n.reachable():
		n.cutAt = time.Time{}
		return now
	case n.cutAt.IsZero():
		n.cutAt = now
	}
	return n.cutAt
}

// wake steps a node now.
func (c *cores) wake(n *coreNode) {
	n.next = c.fleet.world.now
	c.at = n.next
}

func (c *cores) nextStep(now time.Time) time.Time {
	if !c.begun || len(c.answers) > 0 || len(c.requests) > 0 || len(c.refused) > 0 {
		return now
	}
	at := c.at
	if next := atTick(c.transfers.Next(now)); !next.IsZero() && (at.IsZero() || next.Before(at)) {
		at = next
	}
	if len(c.outbox) > 0 {
		if send := c.fleet.gathered(now); at.IsZero() || send.Before(at) {
			at = send
		}
	}
	return at
}

func (c *cores) step() error {
	now := c.fleet.world.now
	if !c.begun {
		c.begun = true
		for n := range c.fleet.world.Truth().Nodes() {
			c.changed(n.ID)
		}
	}
	answers := c.answers
	c.answers = nil
	for _, id := range answers {
		if err := c.answer(id); err != nil {
			return err
		}
	}
	if err := errors.Join(c.refuse(), c.serve(), c.transfers.Advance(now)); err != nil {
		return err
	}
	c.at = time.Time{}
	for _, n := range c.nodes {
		if !n.next.IsZero() && !n.next.After(now) {
			next, err := n.machine.Advance(now)
			if err != nil {
				return fmt.Errorf("advancing a node: %w", err)
			}
			n.next = atTick(next)
		}
		n.registration.send()
		if !n.next.IsZero() && (c.at.IsZero() || n.next.Before(c.at)) {
			c.at = n.next
		}
	}
	c.send(now)
	return nil
}

// nodeTick is the interval at which a node exchanges data with the rest of the world. Between two
// ticks the node runs its own events at the exact times of its clock, so a chain of short effects
// is one step of the world.
const nodeTick = 10 * time.Millisecond

// atTick is the first tick at or after a time. Zero stays zero.
func atTick(at time.Time) time.Time {
	if since := at.Sub(Epoch) % nodeTick; !at.IsZero() && since > 0 {
		return at.Add(nodeTick - since)
	}
	return at
}

// answer gives the present state to the client of a node, if it is connected. A node that the
// servers see for the first time gets its machine.
func (c *cores) answer(id cluster.NodeID) error {
	n := c.node(id)
	if n == nil {
		if c.fleet.world.Truth().Node(id) == nil {
			return nil
		}
		var err error
		if n, err = c.newNode(id); err != nil {
			return err
		}
		i, _ := c.find(id)
		c.nodes = slices.Insert(c.nodes, i, n)
	}
	if c.contact(n); !n.reachable() || !machine.Works(n.machine) || n.registration.due {
		n.listed = nil
		return nil
	}
	if err := n.advance(); err != nil {
		return err
	}
	c.fail(n)
	state := c.fleet.world.Truth()
	w := client.Changes{ClusterID: clusterID, Index: state.Index(), Version: state.ClusterVersion(), Complete: true, Known: []cluster.AllocID{}}
	for a := range state.WorkView().LiveAllocsByNode(id) {
		w.Known = append(w.Known, a.ID)
		if a.AllocModifyIndex > n.answered {
			w.Allocs = append(w.Allocs, a)
			n.receive(a)
		}
	}
	changed, listed := len(w.Allocs) > 0, slices.Clone(w.Known)
	for a := range state.AllocsByNode(id) { // the client has to report their ends, or keeps their data
		if !a.ClientTerminal() || !cluster.IsListed(a) {
			continue
		}
		if cluster.KeepsData(a) {
			w.Known = append(w.Known, a.ID)
		}
		changed = changed || a.AllocModifyIndex > n.answered
		listed = append(listed, a.ID)
		w.Allocs = append(w.Allocs, a)
		n.receive(a)
	}
	n.answered = w.Index
	if !changed && n.listed != nil && slices.Equal(n.listed, listed) {
		return nil // servers answer when something has changed
	}
	n.listed = listed
	w.Claims = slices.Collect(state.ClaimsOnNode(id))
	n.machine.Servers(w)
	c.wake(n)
	return nil
}

// moved queues answers to the clients that keep data until their rows have the end of its move.
func (c *cores) moved(a shims.Applied) {
	m, is := a.Message.(*shims.AllocClientUpdate)
	if !is {
		return
	}
	for _, r := range m.Reports {
		if r.DataOut.StateOf().Ended() {
			c.changed(r.Node)
		}
		if !r.DataIn.StateOf().Ended() {
			continue
		}
		if from := a.After.Alloc(r.DataIn.Peer); from != nil {
			c.changed(from.NodeID)
		}
	}
}

// send proposes the reports that were gathered.
func (c *cores) send(now time.Time) {
	if len(c.outbox) == 0 || c.fleet.gathered(now).After(now) {
		return
	}
	outbox := c.outbox
	c.outbox = nil
	var reports []cluster.AllocReport
	var sent []outgoing
	for _, o := range outbox {
		if o.node.reachable() {
			reports = append(reports, o.reports...)
			sent = append(sent, o)
		} else {
			c.hanging = append(c.hanging, o)
		}
	}
	if len(sent) == 0 {
		return
	}
	queued := c.fleet.Report(reports, func(applied bool) {
		for _, o := range sent {
			c.reply(o, applied)
		}
	})
	if !queued {
		for _, o := range sent {
			c.reply(o, false)
		}
	}
}

// fail answers the hanging reports of a node.
func (c *cores) fail(n *coreNode) {
	c.hanging = slices.DeleteFunc(c.hanging, func(o outgoing) bool {
		if o.node == n {
			c.reply(o, false)
		}
		return o.node == n
	})
}

// reply answers the reports of a node.
func (c *cores) reply(o outgoing, taken bool) {
	o.reply(taken)
	c.wake(o.node)
}

// Turns counts the copies of data that have their turn.
func Turns(w *World) int {
	if w.clients.real == nil {
		return 0
	}
	running, _ := w.clients.real.transfers.Counts()
	return running
}

// Machines returns the nodes with real clients, in the order of their ids.
func (w *World) Machines() []*machine.Node {
	if w.clients.real == nil {
		return nil
	}
	var all []*machine.Node
	for _, n := range w.clients.real.nodes {
		all = append(all, n.machine)
	}
	return all
}
