package scheduler

import (
	"cmp"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
)

// world is a view with the free resources of its ready nodes, after the plans that the view
// does not show yet.
type world struct {
	View
	// ahead are the placements of plans that the view does not show yet.
	ahead []*cluster.Allocation
	// nodes caches look-ups; nil for a node that does not exist.
	nodes map[cluster.NodeID]*cluster.Node
	// book has the claims of volumes of these placements, and of those of the turn; nil until
	// [world.claims] is first called.
	book *volumes.Book
	// arrays are shared by the worlds of a scheduler. The rooms are read if read is true: after the first
	// call of [world.ready].
	arrays *arrays
	read   bool
	// held caches [world.heldOn].
	held map[cluster.NodeID]*held
}

// room is one ready node with its free resources.
type room struct {
	node *cluster.Node
	// all are the resources that the node has for allocations, and free those of them that are free.
	all, free cluster.Resources
	// unbounded means that the node takes any number of allocations. Otherwise slots is
	// how many more it takes.
	unbounded bool
	slots     int
}

// arrays are used again by the next turn. In a play of a plan with a thousand nodes they were a third of the memory that
// the play allocated.
type arrays struct {
	// rooms are the ready nodes by id.
	rooms []room
	// heap is that of the last placer.
	heap candidates
}

func newWorld(v View, a *arrays) *world {
	return &world{View: v, arrays: a, nodes: make(map[cluster.NodeID]*cluster.Node), held: make(map[cluster.NodeID]*held)}
}

// Node returns the node, or nil. The view does not change, and the jobs of a turn share
// their nodes: each is read once.
func (w *world) Node(id cluster.NodeID) *cluster.Node {
	n, cached := w.nodes[id]
	if !cached {
		n = w.View.Node(id)
		w.nodes[id] = n
	}
	return n
}

// ready returns the ready nodes by id. The slice is shared: placements change it.
func (w *world) ready() []room {
	if w.read {
		return w.arrays.rooms
	}
	w.read = true
	rooms := w.arrays.rooms[:0]
	for n, used := range w.NodesInUse() {
		if n.Ready() {
			rooms = append(rooms, roomOn(n, used))
		}
	}
	slices.SortFunc(rooms, func(a, b room) int { return cmp.Compare(a.node.ID, b.node.ID) })
	w.arrays.rooms = rooms
	for _, a := range w.ahead {
		if r := w.room(a.NodeID); r != nil {
			r.take(a.Resources)
		}
	}
	return rooms
}

// claims returns the claims of volumes. It is shared: placements change it.
func (w *world) claims() *volumes.Book {
	if w.book != nil {
		return w.book
	}
	w.book = volumes.NewBook(w)
	for _, a := range w.ahead {
		if g := a.Job.Group(a.TaskGroup); g != nil {
			w.book.Add(a, g)
		}
	}
	return w.book
}

// heldOn returns what allocations have alone on the node. It is shared: placements change it. Only groups that
// request such things call it, and other jobs do not pay for the walk over the node's allocations.
func (w *world) heldOn(id cluster.NodeID) *held {
	h := w.held[id]
	if h == nil {
		h = heldOn(w, id)
		for _, a := range w.ahead {
			if a.NodeID == id {
				h.add(a)
			}
		}
		w.held[id] = h
	}
	return h
}

// held are the things of a node that one allocation has at a time.
type held struct {
	devices cluster.DevicesInUse
	ports   cluster.PortsInUse
	cores   cluster.CoresInUse
}

func (h *held) add(a *cluster.Allocation) {
	h.devices.Add(a.Devices)
	h.ports.Add(a)
	h.cores.Add(a)
}

// heldOn returns what allocations in the view have alone on the node.
func heldOn(v View, id cluster.NodeID) *held {
	h := &held{devices: cluster.DevicesInUse{}, ports: cluster.PortsInUse{}, cores: cluster.CoresInUse{}}
	for a := range v.LiveAllocsByNode(id) {
		h.add(a)
	}
	return h
}

// hasFree reports whether the node has the ports and cores of one more allocation of the group free.
func (w *world) hasFree(g *cluster.TaskGroup, n *cluster.Node) bool {
	if g.RequestsPorts() {
		if _, ok := feasible.AssignPorts(g, n, "", w.heldOn(n.ID).ports); !ok {
			return false
		}
	}
	return g.Cores() == 0 || len(feasible.FreeCores(n, w.heldOn(n.ID).cores)) >= g.Cores()
}

// room returns the ready node, or nil.
func (w *world) room(id cluster.NodeID) *room {
	rooms := w.ready()
	i, ok := slices.BinarySearchFunc(rooms, id, func(r room, id cluster.NodeID) int { return cmp.Compare(r.node.ID, id) })
	if !ok {
		return nil
	}
	return &rooms[i]
}

// roomOn returns the free resources of a node with the usage.
func roomOn(n *cluster.Node, used cluster.Usage) room {
	return room{
		node: n, all: n.Available().Bounded(), free: n.Free(used),
		unbounded: n.MaxAllocs <= 0, slots: n.MaxAllocs - used.Live,
	}
}

// fits reports whether one more allocation fits.
func (r *room) fits(need cluster.Resources) bool {
	return need.Fits(r.free) && (r.unbounded || r.slots > 0)
}

func (r *room) take(need cluster.Resources) {
	r.free = r.free.Minus(need)
	r.slots--
}

// left is how much of the node is free after one more allocation: the sum of the free
// thousandths of each resource.
func (r *room) left(need cluster.Resources) int64 {
	free := r.free.Minus(need)
	return thousandths(free.CPU, r.all.CPU) + thousandths(free.MemoryMB, r.all.MemoryMB) +
		thousandths(free.DiskMB, r.all.DiskMB) + thousandths(free.GPU, r.all.GPU)
}

func thousandths(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return part * 1000 / whole
}

// accepts reports whether the group may run on the node in the cluster version. It ignores the node's
// status and free resources.
func accepts(n *cluster.Node, j *cluster.Job, g *cluster.TaskGroup, in cluster.Version) bool {
	return acceptsJob(n, j, in) && (len(g.NodeClasses) == 0 || slices.Contains(g.NodeClasses, n.NodeClass))
}

func acceptsJob(n *cluster.Node, j *cluster.Job, in cluster.Version) bool {
	anyPool := j.NodePool == cluster.AllNodePools && in >= cluster.VersionOfAllNodePools
	return (anyPool || cmp.Or(n.NodePool, cluster.DefaultNodePool) == cmp.Or(j.NodePool, cluster.DefaultNodePool)) &&
		(len(j.Datacenters) == 0 || slices.Contains(j.Datacenters, n.Datacenter))
}
