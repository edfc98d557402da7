package listed

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/catalogue"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// maxViolations is the largest number of violations that a judge keeps.
const maxViolations = 100

// The checks of S6.
const (
	Wrong     invariant.Check = "S6 wrong instances"
	Unnoticed invariant.Check = "S6 unnoticed change"
	Served    invariant.Check = "S6 listed at its stop"
	Missing   invariant.Check = "S6 missing instance"
)

// Checks returns all checks.
func Checks() []invariant.Check { return []invariant.Check{Wrong, Unnoticed, Served, Missing} }

// Judge collects the violations of one run. Create it with [New]. It never changes what it reads.
type Judge struct {
	invariant.Findings
	// catalogue returns the instances of a state, and the index of their last change.
	catalogue func(*statestore.Snapshot) ([]catalogue.Instance, uint64)
	allocs    map[cluster.AllocID]*alloc
	jobs      map[cluster.JobKey]*cluster.Job
	// last are the instances after the last entry.
	last []catalogue.Instance
	// read is the number of changes of each machine's process table that are judged already.
	read map[cluster.NodeID]int
}

// alloc is what the judge has seen of an allocation.
type alloc struct {
	// over: an entry has written its stop or its end.
	over bool
	// given is the group of the version of its job that was last given to it.
	given *cluster.TaskGroup
}

// New returns a judge.
func New() *Judge {
	return &Judge{catalogue: instances, allocs: map[cluster.AllocID]*alloc{}, jobs: map[cluster.JobKey]*cluster.Job{}, read: map[cluster.NodeID]int{}}
}

// Applied checks the catalogue after an entry. Call it once for each entry, in the order of the log.
func (j *Judge) Applied(now time.Time, a shims.Applied) {
	if len(j.jobs) == 0 { // the first entry, or no job is there
		j.note(a.Before)
		j.last, _ = j.catalogue(a.Before)
	}
	j.note(a.After)
	list, changed := j.catalogue(a.After)
	if got, want := texts(list), j.expected(a.After); !slices.Equal(got, want) {
		j.Add(maxViolations, Wrong, invariant.Violation{At: now, Index: a.Index}, "the catalogue has %v, and there are %v", got, want)
	}
	if !slices.Equal(texts(list), texts(j.last)) && changed < a.Index {
		j.Add(maxViolations, Unnoticed, invariant.Violation{At: now, Index: a.Index}, "the instances were %v and are %v, and the last change has the index %d", texts(j.last), texts(list), changed)
	}
	j.last = list
}

func instances(s *statestore.Snapshot) (list []catalogue.Instance, changed uint64) {
	return catalogue.Read(s, catalogue.Query{Within: func(cluster.Namespace) bool { return true }})
}

// texts describe instances, in an order.
func texts(list []catalogue.Instance) (all []string) {
	for _, i := range list {
		all = append(all, text(i.Alloc, i.Name, i.Node, i.Address, i.Port, i.Tags))
	}
	slices.Sort(all)
	return all
}

func text(id cluster.AllocID, name string, node cluster.NodeID, address string, port int, tags []string) string {
	return fmt.Sprintf("%s of %s on %s at %s:%d %s", name, id, node, address, port, strings.Join(tags, " "))
}

// note notes what an entry has written.
func (j *Judge) note(s *statestore.Snapshot) {
	for job := range s.Jobs() {
		if j.jobs[job.Key()] == job {
			continue
		}
		j.jobs[job.Key()] = job
		for row := range s.AllocsByJob(job.Key()) {
			a := j.allocs[row.ID]
			if group := groupOf(job, row); a != nil && group != nil && runsOn(a.given, group) && !a.over {
				a.given = group
			}
		}
	}
	for row := range s.Allocs() {
		a := j.allocs[row.ID]
		if a == nil {
			a = &alloc{given: groupOf(row.Job, row)}
			j.allocs[row.ID] = a
		}
		a.over = a.over || row.DesiredStatus != "run" || row.ClientStatus == "complete" || row.ClientStatus == "failed" || row.ClientStatus == "lost"
	}
}

func groupOf(job *cluster.Job, row *cluster.Allocation) *cluster.TaskGroup {
	if job == nil {
		return nil
	}
	at := slices.IndexFunc(job.TaskGroups, func(g *cluster.TaskGroup) bool { return g.Name == row.TaskGroup })
	if at < 0 {
		return nil
	}
	return job.TaskGroups[at]
}

// runsOn reports whether the tasks of both versions of a group are the same. The worlds change nothing else that replaces
// allocations.
func runsOn(was, is *cluster.TaskGroup) bool {
	return was != nil && reflect.DeepEqual(was.Tasks, is.Tasks)
}

// expected describes the instances that the catalogue should have, in an order.
func (j *Judge) expected(s *statestore.Snapshot) (all []string) {
	for row := range s.Allocs() {
		a, job, node := j.allocs[row.ID], s.Job(row.JobKey()), s.Node(row.NodeID)
		if job == nil || !wanted(job, row) || node == nil || a.over || a.given == nil || len(a.given.Services) == 0 || !offers(job) {
			continue
		}
		if row.ClientStatus == "pending" || node.Status == "down" || node.Status == "disconnected" && !awaited(job, row) {
			continue
		}
		service := a.given.Services[0]
		if decides(service) && (row.DeploymentStatus == nil || row.DeploymentStatus.Healthy == nil || !*row.DeploymentStatus.Healthy) {
			continue
		}
		address, port := setting.ServiceAddress, 80
		if len(a.given.Ports) > 0 {
			if row.Ports == nil { // it was placed without the scheduler
				continue
			}
			address, port = cmp.Or(row.Ports.IP, "10.0.0.1"), row.Ports.All[0].Number
		}
		all = append(all, text(row.ID, service.Name, row.NodeID, address, port, service.Tags))
	}
	slices.Sort(all)
	return all
}

// wanted reports whether the present version of a job has the group of an allocation, and is not stopped. A plan stops
// the others later.
func wanted(job *cluster.Job, row *cluster.Allocation) bool {
	return !job.Stop && groupOf(job, row) != nil
}

// offers reports whether a group of the present version of a job has a service.
func offers(job *cluster.Job) bool {
	return slices.ContainsFunc(job.TaskGroups, func(g *cluster.TaskGroup) bool { return len(g.Services) > 0 })
}

// awaited reports whether an allocation on a disconnected node has time to return.
func awaited(job *cluster.Job, row *cluster.Allocation) bool {
	g := groupOf(job, row)
	return g != nil && g.Disconnect.LostAfter > 0
}

// decides reports whether the check of a service decides about the health of an allocation.
func decides(s cluster.Service) bool { return len(s.Checks) > 0 && s.Checks[0].OnUpdate == "" }

// Quiet checks the kill signals since the last call. stopped reports whether the client of a node has received the stop of
// an allocation.
func (j *Judge) Quiet(now time.Time, machines []*machine.Node, stopped func(cluster.NodeID, cluster.AllocID) bool) {
	for _, n := range machines {
		changes := n.Machine().Changes(j.read[n.ID()])
		j.read[n.ID()] += len(changes)
		for _, c := range changes {
			p, _ := n.Machine().Process(c.Process)
			if c.What != scripted.Signalled || p.Kind != scripted.TaskProcess || c.By != scripted.ByDriver {
				continue
			}
			id, task := machine.SplitCgroup(p.Cgroup)
			if stopped(n.ID(), id) && j.lists(id) {
				j.Add(maxViolations, Served, invariant.Violation{At: now, Node: n.ID(), Alloc: id}, "task %s got a signal, and the catalogue has its instance", task)
			}
		}
	}
}

func (j *Judge) lists(id cluster.AllocID) bool {
	return slices.ContainsFunc(j.last, func(i catalogue.Instance) bool { return i.Alloc == id })
}

// longEnough is how long a task has run when its allocation must be listed.
const longEnough = time.Minute

// Settled checks the instances of machines whose clients work and are connected. Call it when the effects of all faults
// have ended.
func (j *Judge) Settled(now time.Time, s *statestore.Snapshot, machines []*machine.Node) {
	for _, n := range machines {
		if !machine.Works(n) || !n.Reachable() {
			continue
		}
		for p := range n.Machine().EachLiving() {
			id, task := machine.SplitCgroup(p.Cgroup)
			row, a := s.Alloc(id), j.allocs[id]
			if p.Kind != scripted.TaskProcess || row == nil || a == nil || a.over || a.given == nil || len(a.given.Services) == 0 || len(p.Signals) > 0 ||
				decides(a.given.Services[0]) || len(a.given.Ports) > 0 && row.Ports == nil || task != a.given.Tasks[0].Name || p.StartedAt.Add(longEnough).After(now) {
				continue
			}
			if job := s.Job(row.JobKey()); job != nil && wanted(job, row) && offers(job) && !j.lists(id) {
				j.Add(maxViolations, Missing, invariant.Violation{At: now, Node: n.ID(), Alloc: id}, "task %s has run since %s, and the catalogue has no instance", task, p.StartedAt)
			}
		}
	}
}
