package statestore

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// key is a position in an index. Keys are built from parts, and compare like the tuples of their
// parts. A key is a prefix of another key if and only if its parts are the first parts of the other
// key.
type key []byte

// keyRoom is spare capacity for a list, two numbers and the row's id (a UUID), which
// go-memdb appends. Without it each key would be allocated twice.
const keyRoom = 1 + 2*8 + 36 + 2

// newKey returns a key that begins with the parts.
func newKey[S ~string](parts ...S) key { return texts(withRoom(parts), parts) }

// inList returns a key that begins with a list and the parts.
func inList[S ~string](list byte, parts ...S) key { return texts(withRoom(parts).byte(list), parts) }

// withRoom returns an empty key with capacity for the parts and keyRoom.
func withRoom[S ~string](parts []S) key {
	n := keyRoom
	for _, p := range parts {
		n += len(p) + 2
	}
	return make(key, 0, n)
}

// texts appends strings.
func texts[S ~string](k key, parts []S) key {
	for _, p := range parts {
		k = k.text(string(p))
	}
	return k
}

// lone returns the key of one part, without room for further parts.
func lone[S ~string](part S) key { return make(key, 0, len(part)+2).text(string(part)) }

// text appends a string. It ends in 00 01, and a zero byte in the string becomes 00 FF. So
// the key of one string is never a prefix of the key of another.
func (k key) text(s string) key { return append(k.open(s), 0x00, 0x01) }

// open appends the beginning of a string.
func (k key) open(s string) key {
	for {
		zero := strings.IndexByte(s, 0)
		if zero < 0 {
			return append(k, s...)
		}
		k = append(append(k, s[:zero]...), 0x00, 0xFF)
		s = s[zero+1:]
	}
}

// byte appends a small number.
func (k key) byte(b byte) key { return append(k, b) }

// bool appends a truth value; false comes first.
func (k key) bool(b bool) key {
	if b {
		return append(k, 1)
	}
	return append(k, 0)
}

// number appends a number.
func (k key) number(n uint64) key { return binary.BigEndian.AppendUint64(k, n) }

// idKey is a row's key in the index id. A row without an id has no key, and go-memdb
// refuses it.
func idKey[S ~string](id S) key {
	if id == "" {
		return nil
	}
	return lone(id)
}

func nodeID(n *cluster.Node) key { return idKey(n.ID) }

func drainingNode(n *cluster.Node) key {
	if !n.Draining() {
		return nil
	}
	return inList(listDraining, n.ID)
}

func nodeOfDrain(n *cluster.Node) key {
	if !n.Draining() {
		return nil
	}
	return drainOfNode(n.Drain.ID)
}

func drainOfNode(d cluster.DrainID) key { return inList(listDrain, d) }

func recordID(d *cluster.Drain) key { return idKey(d.ID) }

func recordByNode(d *cluster.Drain) key { return newKey(d.NodeID).number(d.EndIndex) }

func recordByAge(d *cluster.Drain) key { return newKey[string]().number(d.EndIndex) }

func jobID(j *cluster.Job) key {
	if j.ID == "" {
		return nil
	}
	return jobKey(j.Key())
}

func jobOnEveryNode(j *cluster.Job) key {
	if !j.Type.EveryNode() {
		return nil
	}
	return jobKey(j.Key())
}

func jobKey(k cluster.JobKey) key { return newKey(string(k.Namespace), string(k.ID)) }

func groupKey(g cluster.GroupKey) key {
	return newKey(string(g.Job.Namespace), string(g.Job.ID), g.Name)
}

func allocID(a *cluster.Allocation) key { return idKey(a.ID) }

// allocByNode orders a node's allocations: those that are not client-terminal first, by
// stage and by whether they are leaving, then the unconfirmed ones, then those that keep data. Each
// combination is one range.
func allocByNode(a *cluster.Allocation) key {
	if a.ClientTerminal() {
		return newKey(a.NodeID).bool(true).byte(endOf(a))
	}
	return liveOnNode(a.NodeID, a.Stage(), a.Leaving())
}

// The ends of allocations in allocByNode.
const (
	endUnconfirmed byte = iota
	endKeepsData
	endOther
)

func endOf(a *cluster.Allocation) byte {
	switch {
	case a.Unconfirmed():
		return endUnconfirmed
	case cluster.KeepsData(a):
		return endKeepsData
	}
	return endOther
}

func unconfirmedOnNode(n cluster.NodeID) key { return newKey(n).bool(true).byte(endUnconfirmed) }

func keptDataOnNode(n cluster.NodeID) key { return newKey(n).bool(true).byte(endKeepsData) }

func liveOnNode(n cluster.NodeID, s cluster.Stage, leaving bool) key {
	return newKey(n).bool(false).byte(byte(s)).bool(leaving)
}

// allocByGroup orders a job's allocations: those that UnconcludedAllocs yields first, by group,
// and of each group those that GroupAllocs yields first.
func allocByGroup(a *cluster.Allocation) key {
	settled := settled(a)
	return jobKey(a.JobKey()).bool(settled && a.Concluded()).text(a.TaskGroup).bool(settled)
}

// unconcluded is the range of allocByGroup that UnconcludedAllocs yields.
func unconcluded(k cluster.JobKey) key { return jobKey(k).bool(false) }

// inGroup is the range of allocByGroup that GroupAllocs yields.
func inGroup(g cluster.GroupKey) key { return unconcluded(g.Job).text(g.Name).bool(false) }

// settled reports whether the allocation no longer counts in its group: it is
// client-terminal, and not a canary whose slot waits for a replacement.
func settled(a *cluster.Allocation) bool {
	waits := a.Canary() && a.MarkedBy(a.DesiredTransition.Drain) && a.NextAllocation == ""
	return a.ClientTerminal() && !waits
}

func evalID(e *cluster.Evaluation) key { return idKey(e.ID) }

func evalByJob(e *cluster.Evaluation) key {
	return evalsOfJob(e.JobKey()).bool(!e.Open()).number(e.CreateIndex)
}

func evalsOfJob(k cluster.JobKey) key { return inList(listJob, string(k.Namespace), string(k.ID)) }

func evalByQueue(e *cluster.Evaluation) key {
	if !e.Open() {
		return nil
	}
	return queue(e.Status).number(falling(e.Priority)).number(e.CreateIndex)
}

func queue(s cluster.EvalStatus) key { return inList(listQueue, s) }

// falling maps numbers to keys in descending order.
func falling(n int) uint64 { return math.MaxUint64 - (uint64(n) ^ (1 << 63)) }

func changingID(a *cluster.Allocation) key {
	return groupKey(a.GroupKey()).byte(byte(a.Progress())).text(string(a.ID))
}

func markID(m *markRow) key { return newKey(m.Drain).text(string(m.Alloc)) }

func volumeID(v *cluster.Volume) key {
	if v.ID == "" {
		return nil
	}
	return volumeKey(v.Key())
}

func volumeKey(k cluster.VolumeKey) key { return newKey(string(k.Namespace), string(k.ID)) }

func claimID(c *cluster.VolumeClaim) key {
	if c.Volume.ID == "" || c.Alloc == "" {
		return nil
	}
	return claimKey(c.Key())
}

func claimKey(k cluster.ClaimKey) key { return volumeKey(k.Volume).text(string(k.Alloc)) }

func claimByVolume(c *cluster.VolumeClaim) key { return claimsOfVolume(c.Volume).bool(!c.Writes()) }

func claimsOfVolume(k cluster.VolumeKey) key {
	return inList(listClaimVolume, string(k.Namespace), string(k.ID))
}

func claimByNode(c *cluster.VolumeClaim) key { return inList(listClaimNode, c.Node) }

func claimByAlloc(c *cluster.VolumeClaim) key { return inList(listClaimAlloc, c.Alloc) }
