package scheduler

import (
	"cmp"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// world is a view with what is left on its ready nodes, less what plans that
// are not in the view yet will take.
type world struct {
	View
	// ahead are placements of plans that are not in the view yet.
	ahead []*cluster.Allocation
	// nodes are those that were looked up, nil where there is none.
	nodes map[cluster.NodeID]*cluster.Node
	// rooms are the ready nodes by id; nil until [world.ready] is first called.
	rooms []room
}

// room is one ready node and what is left on it.
type room struct {
	node *cluster.Node
	free cluster.Resources
	// unbounded says that the node takes any number of allocations; if not,
	// slots is how many more.
	unbounded bool
	slots     int
}

func newWorld(v View) *world {
	return &world{View: v, nodes: make(map[cluster.NodeID]*cluster.Node)}
}

// Node returns the node, or nil. The view does not change, and the jobs of a turn share
// their nodes: each is looked up once.
func (w *world) Node(id cluster.NodeID) *cluster.Node {
	n, known := w.nodes[id]
	if !known {
		n = w.View.Node(id)
		w.nodes[id] = n
	}
	return n
}

// ready returns the ready nodes by id. The rooms are shared: what is placed is
// taken out of them, and not out of a copy.
func (w *world) ready() []room {
	if w.rooms != nil {
		return w.rooms
	}
	w.rooms = []room{}
	for n, used := range w.NodesInUse() {
		if n.Ready() {
			w.rooms = append(w.rooms, roomOn(n, used))
		}
	}
	slices.SortFunc(w.rooms, func(a, b room) int { return cmp.Compare(a.node.ID, b.node.ID) })
	for _, a := range w.ahead {
		if r := w.room(a.NodeID); r != nil {
			r.take(a.Resources)
		}
	}
	return w.rooms
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

// roomOn is what is left on a node that is used so.
func roomOn(n *cluster.Node, used cluster.Usage) room {
	return room{
		node: n, free: n.Available().Minus(used.Resources),
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

// left says how much of the node would be left after one more allocation: the
// thousandths free of each of its resources, added up.
func (r *room) left(need cluster.Resources) int64 {
	free, all := r.free.Minus(need), r.node.Available()
	return thousandths(free.CPU, all.CPU) + thousandths(free.MemoryMB, all.MemoryMB) +
		thousandths(free.DiskMB, all.DiskMB) + thousandths(free.GPU, all.GPU)
}

func thousandths(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return part * 1000 / whole
}

// accepts reports whether the node is one that the job and the group may run on,
// whether or not it is ready and has room.
func accepts(n *cluster.Node, j *cluster.Job, g *cluster.TaskGroup) bool {
	return acceptsJob(n, j) && (len(g.NodeClasses) == 0 || slices.Contains(g.NodeClasses, n.NodeClass))
}

func acceptsJob(n *cluster.Node, j *cluster.Job) bool {
	return cmp.Or(n.NodePool, cluster.DefaultNodePool) == cmp.Or(j.NodePool, cluster.DefaultNodePool) &&
		(len(j.Datacenters) == 0 || slices.Contains(j.Datacenters, n.Datacenter))
}
