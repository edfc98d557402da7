package placement

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// judgeCores checks the cores of a new allocation against its tasks, its node, and the other allocations there.
func judgeCores(p *plan, a *cluster.Allocation) {
	s, n := p.groups[a.TaskGroup], p.after.Node(a.NodeID)
	if s == nil || n == nil {
		return // judgeRow and judgeNode report it
	}
	wanted, owners := map[string]int{}, map[int]string{}
	for _, t := range s.group.Tasks {
		wanted[t.Name] = t.Cores
	}
	for other := range p.after.WorkView().LiveAllocsByNode(a.NodeID) {
		if other.ID != a.ID {
			eachCore(other, func(_ string, core int) { owners[core] = "allocation " + string(other.ID) })
		}
	}
	ofNode := map[int]bool{}
	for _, core := range n.Cores {
		ofNode[core] = true
	}
	eachCore(a, func(task string, core int) {
		wanted[task]--
		if !ofNode[core] {
			p.report(WrongCores, a, "its node has no core %d", core)
		}
		if owners[core] != "" {
			p.report(CoreGivenTwice, a, "%s has core %d too", owners[core], core)
		}
		owners[core] = "its task " + task
	})
	for _, t := range s.group.Tasks {
		if wanted[t.Name] != 0 {
			p.report(WrongCores, a, "task %s has %d cores, and its group specifies %d", t.Name, t.Cores-wanted[t.Name], t.Cores)
		}
		delete(wanted, t.Name)
	}
	if len(wanted) > 0 {
		p.report(WrongCores, a, "it has cores of a task that its group has not")
	}
}

func eachCore(a *cluster.Allocation, visit func(task string, core int)) {
	if a.Cores != nil {
		for _, t := range a.Cores.All {
			for _, core := range t.Cores {
				visit(t.Task, core)
			}
		}
	}
}

// hasCores reports whether a node has the cores of one more allocation of a group free.
func hasCores(p *plan, n *cluster.Node, g *cluster.TaskGroup) bool {
	free := map[int]bool{}
	for _, core := range n.Cores {
		free[core] = true
	}
	for a := range p.after.WorkView().LiveAllocsByNode(n.ID) {
		eachCore(a, func(_ string, core int) { delete(free, core) })
	}
	return coresNeeded(g) <= len(free)
}

func coresNeeded(g *cluster.TaskGroup) (sum int) {
	for _, t := range g.Tasks {
		sum += t.Cores
	}
	return sum
}
