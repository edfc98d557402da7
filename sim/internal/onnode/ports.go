package onnode

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// portUser judges the ports of a task's process when it starts: they are those that the servers gave to its
// allocation, and no process of another allocation has one of them.
func portUser(f *facts, n *machine.Node, id cluster.AllocID, p *scripted.Process) {
	if row := f.alloc(id).row; row != nil {
		if given := portsOf(row); !slices.Equal(given, p.Ports) {
			f.find("N8 other ports", id, "%s starts with the ports %v, and the servers gave its allocation %v", p.Task, p.Ports, given)
		}
	}
	if len(p.Ports) == 0 {
		return
	}
	for other := range n.Machine().EachLiving() {
		owner, _ := split(other.Task)
		if other.Task == "" || owner == id || f.abandoned(&other) {
			continue
		}
		for _, port := range other.Ports {
			if slices.Contains(p.Ports, port) {
				f.find("N8 two users of a port", id, "%s starts with port %d, which process %d of %s has", p.Task, port, other.PID, other.Task)
			}
		}
	}
}

// isTaken reports whether another allocation with something on the machine has a port or core of the allocation.
func isTaken(f *facts, n *machine.Node, a *alloc) bool {
	ports, cores := portsOf(a.row), coresOf(a.row, "")
	for _, other := range f.order {
		if other == a || other.row == nil || !overlap(ports, portsOf(other.row)) && !overlap(cores, coresOf(other.row, "")) {
			continue
		}
		for _, group := range n.Machine().Cgroups() {
			if of, _ := machine.SplitCgroup(group); of == other.id {
				return true
			}
		}
		if lives(n, func(p scripted.Process) bool {
			of, _ := split(p.Task)
			return p.Task != "" && of == other.id
		}) {
			return true
		}
	}
	return false
}

// portsOf are the ports that the servers gave to an allocation.
func portsOf(row *cluster.Allocation) (ports []int) {
	if row.Ports != nil {
		for _, p := range row.Ports.All {
			ports = append(ports, p.Number)
		}
	}
	return ports
}

func overlap(a, b []int) bool {
	return slices.ContainsFunc(a, func(number int) bool { return slices.Contains(b, number) })
}

// coreUser judges the cores of a task's process when it starts: they are those that the servers gave to the task, and
// no process of another task has one of them.
func coreUser(f *facts, n *machine.Node, id cluster.AllocID, p *scripted.Process) {
	_, task := split(p.Task)
	if row := f.alloc(id).row; row != nil {
		if given := coresOf(row, task); !slices.Equal(given, p.Cores) {
			f.find("N8 other cores", id, "%s starts with the cores %v, and the servers gave it %v", p.Task, p.Cores, given)
		}
	}
	if len(p.Cores) == 0 {
		return
	}
	for other := range n.Machine().EachLiving() {
		owner, of := split(other.Task)
		if other.Task != "" && (owner != id || of != task) && !f.abandoned(&other) && overlap(p.Cores, other.Cores) {
			f.find("N8 two users of a core", id, "%s starts with the cores %v, and process %d of %s has the cores %v", p.Task, p.Cores, other.PID, other.Task, other.Cores)
		}
	}
}

// coresOf are the cores that the servers gave to a task of an allocation, or to all its tasks.
func coresOf(row *cluster.Allocation, task string) (cores []int) {
	if row.Cores != nil {
		for _, t := range row.Cores.All {
			if task == "" || t.Task == task {
				cores = append(cores, t.Cores...)
			}
		}
	}
	return cores
}
