// Package catalogue derives the instances of services from the rows of allocations. No row of its own exists, and no
// client registers anything: the entry that stops an allocation removes its instances. Begin with [Read].
package catalogue

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// State is the part of the state of a cluster that the package reads. See the State of package httpapi.
type State interface {
	Jobs() iter.Seq[*cluster.Job]
	AllocsByJob(cluster.JobKey) iter.Seq[*cluster.Allocation]
	Node(cluster.NodeID) *cluster.Node
	TableIndex(table string) uint64
	RemovedAt() uint64
}

// The tables of [State.TableIndex].
const (
	tableJobs  = "jobs"
	tableNodes = "nodes"
)

// Query selects instances.
type Query struct {
	// Within reports whether the namespace is included.
	Within func(cluster.Namespace) bool
	// Name is the name of the service, or empty for all.
	Name string
	// Job and Alloc are the job and the allocation that the instances belong to, or empty for all.
	Job   cluster.JobID
	Alloc cluster.AllocID
	// Region is the region of the cluster.
	Region string
}

// Instance is a service of an allocation.
type Instance struct {
	// ID is unique in the cluster.
	ID         string
	Name       string
	Namespace  cluster.Namespace
	Node       cluster.NodeID
	Datacenter string
	Job        cluster.JobID
	Alloc      cluster.AllocID
	Tags       []string
	Address    string
	// Port is zero for a service without a port.
	Port int
	// CreateIndex is that of the allocation. ModifyIndex is the later one of it and of the version of the job.
	CreateIndex, ModifyIndex uint64
}

func (i Instance) equal(o Instance) bool {
	return i.Compare(o) == 0 && i.Node == o.Node && i.Datacenter == o.Datacenter && i.Address == o.Address && i.Port == o.Port &&
		i.ModifyIndex == o.ModifyIndex && slices.Equal(i.Tags, o.Tags)
}

// Compare orders instances by namespace, name and id.
func (i Instance) Compare(o Instance) int {
	return cmp.Or(cmp.Compare(i.Namespace, o.Namespace), cmp.Compare(i.Name, o.Name), cmp.Compare(i.ID, o.ID))
}

// Equal reports whether both lists are the same.
func Equal(a, b []Instance) bool { return slices.EqualFunc(a, b, Instance.equal) }

// Read returns the listed instances, by namespace, name and id. At a state whose index is not below changed they were
// the same.
//
// It reads the allocations of the jobs whose present version has services. So a registration of a job without services
// removes the instances of its older versions.
func Read(s State, q Query) (list []Instance, changed uint64) {
	r := reader{state: s, query: q, changed: max(s.TableIndex(tableJobs), s.RemovedAt())}
	for j := range s.Jobs() {
		if !q.Within(j.Namespace) || q.Job != "" && q.Job != j.ID || !j.HasServices() {
			continue
		}
		for a := range s.AllocsByJob(j.Key()) {
			if q.Alloc == "" || q.Alloc == a.ID {
				r.add(a)
			}
		}
	}
	slices.SortFunc(r.list, Instance.Compare)
	return r.list, r.changed
}

type reader struct {
	state   State
	query   Query
	list    []Instance
	changed uint64
}

// add adds the instances of an allocation. Its reports change no answer if it has no instance with the name, or if the
// servers stop it.
func (r *reader) add(a *cluster.Allocation) {
	r.changed = max(r.changed, a.AllocModifyIndex)
	g := a.Job.Group(a.TaskGroup)
	if g == nil || !g.HasServices() || a.DesiredStatus != cluster.DesiredRun {
		return
	}
	n := r.state.Node(a.NodeID)
	x := texts{alloc: a, group: g, node: n, region: r.query.Region}
	named := false
	for task, s := range g.ServiceDefinitions() {
		name, err := x.replace(task, s.Name)
		named = named || name != s.Name // the facts of the node change such a name
		if r.query.Name != "" && name != r.query.Name {
			continue
		}
		named = true
		if err != nil || !cluster.ValidServiceName(name) || !listed(a, g, s, n) {
			continue
		}
		if i, ok := x.instance(task, s, name); ok {
			r.list = append(r.list, i)
		}
	}
	if named {
		r.changed = max(r.changed, a.ModifyIndex)
		if n == nil {
			r.changed = max(r.changed, r.state.TableIndex(tableNodes))
		} else {
			r.changed = max(r.changed, n.ModifyIndex)
		}
	}
}

// listed reports whether an allocation with the desired status run has an instance of the service. On a disconnected
// node it has one until it is lost.
func listed(a *cluster.Allocation, g *cluster.TaskGroup, s *cluster.Service, n *cluster.Node) bool {
	switch {
	case n == nil, n.Status == cluster.NodeDown, n.Status == cluster.NodeDisconnected && g.Disconnect.LostAfter == 0:
		return false // its end is a matter of the next plan
	case a.ClientStatus != cluster.ClientRunning && a.ClientStatus != cluster.ClientUnknown:
		return false
	}
	return !s.Decides(g) || a.JudgedHealthy()
}

// instance returns an instance of a service whose name is resolved. It is false if there is no address.
func (x *texts) instance(task string, s *cluster.Service, name string) (i Instance, ok bool) {
	a, owner := x.alloc, "group-"+x.group.Name
	if task != "" {
		owner = task
	}
	i = Instance{
		ID: fmt.Sprintf("_nomad-task-%s-%s-%s-%s", a.ID, owner, name, s.PortLabel), Name: name,
		Namespace: a.Namespace, Node: a.NodeID, Datacenter: x.node.Datacenter, Job: a.JobID, Alloc: a.ID,
		CreateIndex: a.CreateIndex, ModifyIndex: max(a.CreateIndex, a.Job.JobModifyIndex),
	}
	if x.node.Network != nil {
		i.Address = x.node.Network.IP
	}
	switch number, err := strconv.Atoi(s.PortLabel); {
	case s.PortLabel == "":
	case err == nil:
		i.Port = number
	default:
		p, is := portOf(a, task, s.PortLabel)
		if !is {
			return i, false
		}
		i.Address, i.Port = a.Ports.IP, p.Number
	}
	if s.Address != "" {
		address, err := x.replace(task, s.Address)
		if err != nil || address == "" {
			return i, false
		}
		i.Address = address
	}
	for _, tag := range s.Tags {
		if replaced, err := x.replace(task, tag); err == nil {
			tag = replaced
		}
		i.Tags = append(i.Tags, tag)
	}
	return i, true
}

// portOf returns the port with the label: first of the task, then of the group. A service of the group may have the
// port of any task.
func portOf(a *cluster.Allocation, task, label string) (found cluster.AssignedPort, is bool) {
	if a.Ports == nil {
		return found, false
	}
	for _, p := range a.Ports.All {
		switch {
		case p.Label != label, p.Task != "" && task != "" && p.Task != task:
		case p.Task == task:
			return p, true
		case !is:
			found, is = p, true
		}
	}
	return found, is
}
