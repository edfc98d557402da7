package feasible_test

import (
	"fmt"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
)

func portNode(from, to int, reserved ...cluster.PortRange) *cluster.Node {
	return &cluster.Node{ID: "n", Network: &cluster.NodeNetwork{IP: "10.0.0.1", MinDynamicPort: from, MaxDynamicPort: to, Reserved: reserved}}
}

// What AssignPorts chooses, RefusalOfPorts accepts. If it chooses none, a static port is taken or reserved, or too
// few dynamic ports are free.
func TestAssignPorts_AgainstACount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := portNode(100, 100+rapid.IntRange(0, 5).Draw(rt, "size"), cluster.PortRange{First: 102, Last: 103})
		g, used, free := &cluster.TaskGroup{Tasks: []*cluster.Task{{Name: "t"}}}, cluster.PortsInUse{}, map[int]bool{}
		for port := n.Network.MinDynamicPort; port <= n.Network.MaxDynamicPort; port++ {
			switch {
			case rapid.IntRange(0, 3).Draw(rt, "use") == 0:
				used[port] = &cluster.Allocation{ID: "other"}
			case port != 102 && port != 103:
				free[port] = true
			}
		}
		static := rapid.SampledFrom([]int{0, 99, 100, 101, 102}).Draw(rt, "static")
		if static != 0 {
			g.Ports = append(g.Ports, cluster.PortRequest{Label: "s", Static: static})
		}
		dynamic := rapid.IntRange(0, 4).Draw(rt, "dynamic")
		for i := range dynamic {
			g.Tasks[0].Ports = append(g.Tasks[0].Ports, cluster.PortRequest{Label: fmt.Sprint(i), To: i})
		}
		id := cluster.AllocID(rapid.StringMatching(`[a-f0-9]{1,8}`).Draw(rt, "id"))
		assigned, ok := feasible.AssignPorts(g, n, id, used)
		delete(free, static)
		must.Eq(rt, used[static] == nil && static != 102 && len(free) >= dynamic, ok)
		again, _ := feasible.AssignPorts(g, n, id, used)
		must.Eq(rt, assigned, again)
		if ok {
			must.Eq(rt, "", feasible.RefusalOfPorts(g, n, assigned, used))
			return
		}
		must.True(rt, feasible.MissingPorts(g, n) != "" || len(feasible.TakenPorts(g, n, used)) > 0)
	})
}

// The ports of allocations that follow each other differ, so that a new one does not get the ports of an old one.
func TestAssignPorts_StartsAtAHash(t *testing.T) {
	t.Parallel()
	g := &cluster.TaskGroup{Ports: []cluster.PortRequest{{Label: "http"}}}
	seen := map[int]bool{}
	for i := range 100 {
		assigned, ok := feasible.AssignPorts(g, portNode(20000, 32000), cluster.AllocID(fmt.Sprint("alloc-", i)), nil)
		must.True(t, ok)
		seen[assigned.All[0].Number] = true
	}
	must.GreaterEq(t, 95, len(seen))
}

// A static port that is taken has a holder, also if dynamic ones are missing too.
func TestTakenPorts(t *testing.T) {
	t.Parallel()
	holder := &cluster.Allocation{ID: "a"}
	g := &cluster.TaskGroup{Ports: []cluster.PortRequest{{Label: "http", Static: 80}, {Label: "admin"}}}
	n := portNode(100, 100)
	must.Eq(t, []feasible.Taken{{Port: 80, Holder: holder}}, feasible.TakenPorts(g, n, cluster.PortsInUse{80: holder}))
	must.Eq(t, []feasible.Taken{{}}, feasible.TakenPorts(g, n, cluster.PortsInUse{100: holder}))
	must.SliceEmpty(t, feasible.TakenPorts(g, n, nil))
	must.Eq(t, "the node reports no network for ports", feasible.MissingPorts(g, &cluster.Node{}))
}
