package wire

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// NetworkResource is the network of a node, or the ports that a part of a job requests or has. In a
// registration of a job, only the ports are read.
type NetworkResource struct {
	// Mode is host: tasks use the network of their node.
	Mode   string
	Device string
	CIDR   string
	IP     string
	// ReservedPorts are the static ports. DynamicPorts are those whose number the scheduler chooses.
	ReservedPorts []Port
	DynamicPorts  []Port
}

// Port is a port of a network.
type Port struct {
	Label string
	// Value is the number, and zero in a request for a dynamic port.
	Value int
	// To is the port in the task to which the driver maps the port. Zero and -1 are none.
	To int
}

// PortMapping is a port that a group has.
type PortMapping struct {
	Label  string
	Value  int
	To     int
	HostIP string
}

// hostMode is the mode of all networks.
const hostMode = "host"

// newNodeNetworks returns the network of a node, or nil.
func newNodeNetworks(n *cluster.NodeNetwork) []*NetworkResource {
	if n == nil {
		return nil
	}
	return []*NetworkResource{{Mode: hostMode, Device: n.Device, IP: n.IP}}
}

// network reads the network that a client registers. A node without networks has none.
func (w *NodeResources) network(reserved *ReservedResources) *cluster.NodeNetwork {
	if w == nil || len(w.Networks) == 0 || w.Networks[0] == nil {
		return nil
	}
	n := &cluster.NodeNetwork{Device: w.Networks[0].Device, IP: w.Networks[0].IP, MinDynamicPort: w.MinDynamicPort, MaxDynamicPort: w.MaxDynamicPort}
	if reserved != nil {
		var err error
		if n.Reserved, err = cluster.ParsePortRanges(reserved.Networks.ReservedHostPorts); err != nil {
			n.Reserved = cluster.PortRanges{{}} // the check of the node refuses it
		}
	}
	return n
}

// newPortRequests returns the ports that a part of a job requests.
func newPortRequests(requests []cluster.PortRequest) []*NetworkResource {
	if len(requests) == 0 {
		return nil
	}
	w := &NetworkResource{Mode: hostMode}
	for _, r := range requests {
		w.add(r.Static != 0, Port{Label: r.Label, Value: r.Static, To: r.To})
	}
	return []*NetworkResource{w}
}

func (w *NetworkResource) add(static bool, p Port) {
	if static {
		w.ReservedPorts = append(w.ReservedPorts, p)
	} else {
		w.DynamicPorts = append(w.DynamicPorts, p)
	}
}

// portRequests reads the ports that a part of a job requests. Only one network has ports.
func portRequests(networks []*NetworkResource) (requests []cluster.PortRequest, err error) {
	for _, w := range networks {
		if w == nil {
			continue
		}
		if len(requests) > 0 && len(w.ReservedPorts)+len(w.DynamicPorts) > 0 {
			return nil, errors.New("only one network can have ports: write them in one block")
		}
		for _, p := range w.ReservedPorts {
			if p.Value == 0 {
				return nil, fmt.Errorf("port %q: a port of ReservedPorts needs a Value", cluster.CutText(p.Label))
			}
			requests = append(requests, cluster.PortRequest{Label: p.Label, Static: p.Value, To: p.to()})
		}
		for _, p := range w.DynamicPorts {
			requests = append(requests, cluster.PortRequest{Label: p.Label, To: p.to()})
		}
	}
	return requests, nil
}

func (p Port) to() int {
	if p.To == -1 {
		return 0
	}
	return p.To
}

// addPorts adds the ports of an allocation: those of its group, and those of its tasks.
func (w *AllocatedResources) addPorts(a *cluster.Allocation) {
	if a.Ports == nil {
		return
	}
	static := make(map[[2]string]bool)
	if g := a.Job.Group(a.TaskGroup); g != nil {
		for task, r := range g.PortRequests() {
			static[[2]string{task, r.Label}] = r.Static != 0
		}
	}
	network := func(of []*NetworkResource) []*NetworkResource {
		if len(of) == 0 {
			of = append(of, &NetworkResource{Mode: hostMode, IP: a.Ports.IP})
		}
		return of
	}
	for _, p := range a.Ports.All {
		one := Port{Label: p.Label, Value: p.Number, To: p.To}
		if p.Task == "" {
			w.Shared.Networks = network(w.Shared.Networks)
			w.Shared.Networks[0].add(static[[2]string{"", p.Label}], one)
			w.Shared.Ports = append(w.Shared.Ports, PortMapping{Label: p.Label, Value: p.Number, To: p.To, HostIP: a.Ports.IP})
			continue
		}
		if w.Tasks[p.Task] == nil {
			w.Tasks[p.Task] = &AllocatedTask{}
		}
		t := w.Tasks[p.Task]
		t.Networks = network(t.Networks)
		t.Networks[0].add(static[[2]string{p.Task, p.Label}], one)
	}
}

// assignedPorts reads the ports of an allocation, in the order of its tasks.
func (w *AllocatedResources) assignedPorts(order []string) *cluster.AssignedPorts {
	if w == nil {
		return nil
	}
	assigned := &cluster.AssignedPorts{}
	for _, p := range w.Shared.Ports {
		assigned.IP = p.HostIP
		assigned.All = append(assigned.All, cluster.AssignedPort{Label: p.Label, Number: p.Value, To: p.To})
	}
	for _, name := range w.taskNames(order) {
		for _, n := range w.Tasks[name].Networks {
			if n == nil {
				continue
			}
			assigned.IP = n.IP
			for _, p := range slices.Concat(n.ReservedPorts, n.DynamicPorts) {
				assigned.All = append(assigned.All, cluster.AssignedPort{Task: name, Label: p.Label, Number: p.Value, To: p.To})
			}
		}
	}
	if assigned.All == nil {
		return nil
	}
	return assigned
}
