// Package catalogue derives the instances of services from the rows of allocations. No row of its own exists, and no
// client registers anything: the entry that stops an allocation, its job or its group removes its instances. Begin with
// [Read].
package catalogue

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// State is the part of the state of a cluster that the package reads. See the State of package httpapi.
type State interface {
	Job(cluster.JobKey) *cluster.Job
	Jobs() iter.Seq[*cluster.Job]
	Alloc(cluster.AllocID) *cluster.Allocation
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
	Job   cluster.JobKey
	Alloc cluster.AllocID
	// Region is the region of the cluster.
	Region string
}

// Instance is a service of an allocation.
type Instance struct {
	// ID has the form of the compatible API. Services of one allocation may have the same one, as a group g and a task
	// named group-g have.
	ID string
	// Place is that of the service in its group, from 1. It differs where the ID does not.
	Place      int
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

// Compare orders instances by namespace, name and id, and those of one allocation by their place in its group.
func (i Instance) Compare(o Instance) int {
	return cmp.Or(cmp.Compare(i.Namespace, o.Namespace), cmp.Compare(i.Name, o.Name), cmp.Compare(i.ID, o.ID), cmp.Compare(i.Place, o.Place))
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
	switch {
	case q.Alloc != "":
		if a := s.Alloc(q.Alloc); a != nil {
			r.addAll(s.Job(a.JobKey()), slices.Values([]*cluster.Allocation{a}))
		}
	case q.Job != cluster.JobKey{}:
		r.addAll(s.Job(q.Job), s.AllocsByJob(q.Job))
	default:
		for j := range s.Jobs() {
			r.addAll(j, s.AllocsByJob(j.Key()))
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

// addAll adds the instances of allocations of a job, which may be nil.
func (r *reader) addAll(j *cluster.Job, allocs iter.Seq[*cluster.Allocation]) {
	if j == nil || !r.query.Within(j.Namespace) || !j.HasServices() {
		return
	}
	for a := range allocs {
		r.add(j, a)
	}
}

// add adds the instances of an allocation. Its reports change no answer if it has no instance with the name, or if the
// servers stop it.
func (r *reader) add(j *cluster.Job, a *cluster.Allocation) {
	r.changed = max(r.changed, a.AllocModifyIndex)
	g := a.Job.Group(a.TaskGroup)
	if g == nil || !g.HasServices() || a.DesiredStatus != cluster.DesiredRun {
		return
	}
	n := r.state.Node(a.NodeID)
	x := texts{alloc: a, group: g, node: n, region: r.query.Region}
	named, place := false, 0
	for task, s := range g.ServiceDefinitions() {
		place++
		if begin, _, _ := strings.Cut(s.Name, "$"); r.query.Name != "" && !strings.HasPrefix(r.query.Name, begin) {
			continue // no value of its variables gives the name
		}
		name, err := x.replace(task, s.Name)
		named = named || name != s.Name // the facts of the node change such a name
		if r.query.Name != "" && name != r.query.Name {
			continue
		}
		named = true
		if err != nil || !cluster.ValidServiceName(name) || !listed(j, a, s, n) {
			continue
		}
		if i, ok := x.instance(task, s, name); ok {
			i.Place = place
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
// node it has one until it is lost. As for the scheduler, j is the present version of its job.
func listed(j *cluster.Job, a *cluster.Allocation, s *cluster.Service, n *cluster.Node) bool {
	g := j.Group(a.TaskGroup)
	switch {
	case j.Stopped(), g == nil:
		return false // the job no longer wants it, and the next plan stops it
	case n == nil, n.Status == cluster.NodeDown, n.Status == cluster.NodeDisconnected && g.Disconnect.LostAfter == 0:
		return false // its end is a matter of the next plan
	case a.ClientStatus != cluster.ClientRunning && a.ClientStatus != cluster.ClientUnknown:
		return false
	}
	return !s.Decides(a.Job.Group(a.TaskGroup)) || a.JudgedHealthy()
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
	if s.PortLabel != "" {
		ip, number, is := a.Ports.ServicePort(task, s.TaskName, s.PortLabel)
		if !is {
			return i, false
		}
		i.Address, i.Port = cmp.Or(ip, i.Address), number
	}
	if s.Address != "" {
		address, err := x.replace(task, s.Address)
		if err != nil || !cluster.ValidAddress(address) {
			return i, false
		}
		i.Address = address
	}
	if i.Address == "" {
		return i, false
	}
	for _, tag := range s.Tags {
		if replaced, err := x.replace(task, tag); err == nil {
			tag = replaced
		}
		i.Tags = append(i.Tags, tag)
	}
	return i, true
}
