package cluster

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// StopMarginOfNode is an additional wait before the servers rely on a node that they cannot reach to
// have stopped an allocation. It covers differences of clocks. It is a constant, because all servers
// must use the same value.
const StopMarginOfNode = time.Minute

// KillMarginOfNode is how long after the stop time the watchdog of a node kills the tasks that a client
// which lives has not stopped, because the client or its driver hangs. The servers rely on this kill:
//
//	contact + StopOnClientAfter + stop time + KillMarginOfNode
//	  < away since + StopOnClientAfter + stop time + StopMarginOfNode
//
// A client waits for the TTL of its heartbeat if that is longer than StopOnClientAfter, but at most 30 s
// longer than StopOnClientAfter.
//
// The servers notice later that a node is away than its client has sent the last answered heartbeat.
// So the difference of the margins is what remains for differences of clocks, and for the kill.
const KillMarginOfNode = 10 * time.Second

// Unconfirmed reports whether the allocation counts as ended although its tasks may run: the servers
// gave it up as lost, its client has not reported its end, and no entry has confirmed it.
func (a *Allocation) Unconfirmed() bool {
	return a.ClientStatus == ClientLost && a.ConfirmedAt == (time.Time{})
}

// StoppedByNodeAt returns when a node that the servers have not reached since a time must have stopped
// the allocation by itself, by its client or by the watchdog, if stopping takes stopTime. The time is
// zero if its group has no StopOnClientAfter, or if since is zero.
func StoppedByNodeAt(a *Allocation, since time.Time, stopTime time.Duration) time.Time {
	g := a.Job.Group(a.TaskGroup)
	if g == nil || g.Disconnect.StopOnClientAfter <= 0 || since.IsZero() {
		return time.Time{}
	}
	// Added one by one, because the sum of durations may overflow.
	return since.Add(g.Disconnect.StopOnClientAfter).Add(stopTime).Add(StopMarginOfNode)
}

// ConfirmableAt returns when time alone confirms that a lost allocation has ended. The node is the
// allocation's own, or nil if it does not exist. The time is zero if the servers reach the node: then
// only its client confirms the end. It is also zero if the node has been deleted and the allocation
// uses volumes, because the limits of the node are deleted too.
func ConfirmableAt(a *Allocation, n *Node) time.Time {
	g, since := a.Job.Group(a.TaskGroup), a.AwaySince
	switch {
	case !a.Unconfirmed() || g == nil || n.Reachable():
		return time.Time{}
	case n == nil && (len(g.Volumes) > 0 || a.Job.StoragePlugin()):
		return time.Time{}
	case n != nil && n.AwaySince.After(since): // the node was back for a while
		since = n.AwaySince
	}
	return StoppedByNodeAt(a, since, a.StopTimeOn(n))
}

// IsConfirmable reports whether time alone confirms, at now, that a lost allocation has ended.
func IsConfirmable(a *Allocation, n *Node, now time.Time) bool {
	at := ConfirmableAt(a, n)
	return !at.IsZero() && !now.Before(at)
}

// IsListed reports whether an answer of the servers to the client of the node lists an allocation: its
// end is not reported, or nothing confirms it, or the client keeps its data for a replacement.
func IsListed(a *Allocation) bool { return !a.ClientTerminal() || a.Unconfirmed() || KeepsData(a) }

// UnlistedAllocs are allocations that the client of a node may run, although the servers do not list
// them: the servers were restored from an older state, are a new cluster, or have deleted the rows.
type UnlistedAllocs struct {
	Count int
	// Allocs are the first [MaxUnconfirmedNames] of them by id.
	Allocs []AllocID `codec:",omitempty"`
}

// NewUnlistedAllocs returns the allocations with these ids, which it sorts. It keeps the slice.
func NewUnlistedAllocs(ids []AllocID) *UnlistedAllocs {
	slices.Sort(ids)
	return &UnlistedAllocs{Count: len(ids), Allocs: slices.Clip(ids[:min(len(ids), MaxUnconfirmedNames)])}
}

// Len is the number of allocations, or zero for nil.
func (u *UnlistedAllocs) Len() int {
	if u == nil {
		return 0
	}
	return u.Count
}

// Equal reports whether both have the same count and name the same allocations. Nil is equal to an
// empty one.
func (u *UnlistedAllocs) Equal(o *UnlistedAllocs) bool {
	return u.Len() == o.Len() && (u.Len() == 0 || slices.Equal(u.Allocs, o.Allocs))
}

// Copy returns a copy that shares nothing with u.
func (u *UnlistedAllocs) Copy() *UnlistedAllocs {
	if u == nil {
		return nil
	}
	return &UnlistedAllocs{Count: u.Count, Allocs: slices.Clone(u.Allocs)}
}

// maxUnlisted is far more than a node can run. It keeps the sums of counts small.
const maxUnlisted = 1_000_000

// Check returns what is wrong with a client's report, or nil.
func (u *UnlistedAllocs) Check() error {
	if u == nil {
		return nil
	}
	if u.Count > maxUnlisted {
		return fmt.Errorf("the number of unlisted allocations must be <= %d but found %d", maxUnlisted, u.Count)
	}
	if len(u.Allocs) != min(u.Count, MaxUnconfirmedNames) {
		return fmt.Errorf("of %d unlisted allocations the first %d must be named but found %d", u.Count, MaxUnconfirmedNames, len(u.Allocs))
	}
	for i, id := range u.Allocs {
		if err := CheckID(id); err != nil {
			return fmt.Errorf("invalid id of an unlisted allocation: %w", err)
		}
		if i > 0 && u.Allocs[i-1] >= id {
			return errors.New("the ids of unlisted allocations are not in order")
		}
	}
	return nil
}

// Without returns the allocations except the named ones for which gone returns true, or nil if none is
// left.
func (u *UnlistedAllocs) Without(gone func(AllocID) bool) *UnlistedAllocs {
	if u.Len() == 0 {
		return nil
	}
	left := slices.DeleteFunc(slices.Clone(u.Allocs), gone)
	count := u.Count - (len(u.Allocs) - len(left))
	if count == 0 {
		return nil
	}
	return &UnlistedAllocs{Count: count, Allocs: left}
}

// LeftIn returns those that a newer report of the client may still contain, or nil if none is left. An
// allocation without a name counts until the newer report has too few.
func (u *UnlistedAllocs) LeftIn(report *UnlistedAllocs) *UnlistedAllocs {
	left := u.Without(func(id AllocID) bool {
		_, named := slices.BinarySearch(report.Allocs, id)
		all := report.Count == len(report.Allocs) // otherwise the report names those up to its last name
		return !named && (all || id < report.Allocs[len(report.Allocs)-1])
	})
	if left.Len() > report.Count {
		left.Count = report.Count
	}
	if left.Len() == 0 {
		return nil
	}
	return left
}
