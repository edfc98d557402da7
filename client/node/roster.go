package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// roster contains the state of tasks from the newest records. So requests for logs do not need a
// step of the core.
type roster struct {
	drivers *drivers

	mu     sync.Mutex
	allocs map[cluster.AllocID]*rostered // guarded by mu
	// used is the last measurement of each start of a task; guarded by mu.
	used map[driver.TaskID]driver.Usage
}

var _ nodeapi.Roster = (*roster)(nil)

// rostered is an allocation. It is immutable: a newer record creates a new one.
type rostered struct {
	job   cluster.JobKey
	tasks []rosteredTask
	// ended: the allocation has ended. kept is the allocation if the client keeps its data, or nil. holder is
	// the allocation in whose folders the data is. lost: the data is lost.
	ended, lost bool
	kept        *cluster.Allocation
	holder      cluster.AllocID
	// changed is closed when a newer record arrives, or when the allocation is removed.
	changed chan struct{}
}

type rosteredTask struct {
	nodeapi.TaskState
	id     driver.TaskID
	driver string
}

func newRoster(d *drivers, records ...[]*client.Record) *roster {
	r := &roster{drivers: d, allocs: make(map[cluster.AllocID]*rostered), used: make(map[driver.TaskID]driver.Usage)}
	for _, rec := range slices.Concat(records...) {
		r.put(rec)
	}
	return r
}

// put updates the roster from a record. It keeps no reference to the record, except
// for the allocation, which nothing writes to.
func (r *roster) put(rec *client.Record) {
	next := &rostered{job: rec.Alloc.JobKey(), ended: rec.Ended, changed: make(chan struct{})}
	next.lost = rec.DataOut != nil && rec.DataOut.Lost
	if out := rec.DataOut; out != nil && out.State == cluster.DataKept && !out.Lost {
		next.kept, next.holder = rec.Alloc, rec.Alloc.ID
		if out.Moved {
			next.holder = out.Peer
		}
	}
	for i := range rec.Tasks {
		t := &rec.Tasks[i]
		one := rosteredTask{id: t.ID, TaskState: nodeapi.TaskState{
			Name: t.State.Name, Running: t.Phase == client.PhaseRunning, Dead: t.Phase == client.PhaseDead,
		}}
		if _, task := taskOf(rec.Alloc, t.State.Name); task != nil {
			one.driver = task.Driver
		}
		if assigned := rec.Alloc.Devices; assigned != nil {
			one.Devices = slices.DeleteFunc(slices.Clone(assigned.All), func(d cluster.AssignedDevice) bool { return d.Task != t.State.Name })
		}
		next.tasks = append(next.tasks, one)
	}
	r.replace(rec.Alloc.ID, next)
}

// remove removes an allocation. It returns the allocation's job, or the zero value if the roster does not
// have the allocation.
func (r *roster) remove(alloc cluster.AllocID) (job cluster.JobKey) {
	if last := r.replace(alloc, nil); last != nil {
		return last.job
	}
	return cluster.JobKey{}
}

// replace returns the value that it replaces, or nil.
func (r *roster) replace(alloc cluster.AllocID, next *rostered) (last *rostered) {
	r.mu.Lock()
	last = r.allocs[alloc]
	if last != nil {
		for _, t := range last.tasks {
			if next == nil || !slices.ContainsFunc(next.tasks, func(n rosteredTask) bool { return n.id == t.id }) {
				delete(r.used, t.id)
			}
		}
	}
	if next == nil {
		delete(r.allocs, alloc)
	} else {
		r.allocs[alloc] = next
	}
	r.mu.Unlock()
	if last != nil {
		close(last.changed)
	}
	return last
}

func (r *roster) get(alloc string) *rostered {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.allocs[cluster.AllocID(alloc)]
}

// keptData returns an ended allocation that keeps its data, and the allocation in whose folders the data is,
// or why there is none.
func (r *roster) keptData(alloc string) (kept *cluster.Allocation, holder cluster.AllocID, err error) {
	a := r.get(alloc)
	switch {
	case a == nil:
		return nil, "", fmt.Errorf("%w: the node does not have allocation %q", nodeapi.ErrUnknown, alloc)
	case !a.ended:
		return nil, "", fmt.Errorf("%w: allocation %q has not ended", nodeapi.ErrState, alloc)
	case a.lost:
		return nil, "", fmt.Errorf("%w: %s", nodeapi.ErrUnknown, client.DataLost)
	case a.kept == nil:
		return nil, "", fmt.Errorf("%w: the node does not keep the data of allocation %q", nodeapi.ErrUnknown, alloc)
	}
	switch h := r.get(string(a.holder)); {
	case h == nil:
		return nil, "", fmt.Errorf("%w: the node does not have allocation %q, to which the data of allocation %q has moved", nodeapi.ErrUnknown, a.holder, alloc)
	case !h.ended:
		return nil, "", fmt.Errorf("%w: allocation %q, to which the data of allocation %q has moved, has not ended", nodeapi.ErrState, a.holder, alloc)
	}
	return a.kept, a.holder, nil
}

// Tasks implements [nodeapi.Roster].
func (r *roster) Tasks(alloc string) (tasks []nodeapi.TaskState, changed <-chan struct{}, known bool) {
	a := r.get(alloc)
	if a == nil {
		return nil, nil, false
	}
	for _, t := range a.tasks {
		tasks = append(tasks, t.TaskState)
	}
	return tasks, a.changed, true
}

// Usage implements [nodeapi.Roster]. If the driver does not answer in time, the last measurement of
// the task counts, which contains its time: a driver may report only changes.
func (r *roster) Usage(ctx context.Context, alloc, task string) (driver.Usage, error) {
	if a := r.get(alloc); a != nil {
		for _, t := range a.tasks {
			if t.Name != task || !t.Running {
				continue
			}
			d, err := r.drivers.current("TaskStats", t.driver)
			if err != nil {
				return driver.Usage{}, err
			}
			usage, err := sample(ctx, d, t.id)
			r.mu.Lock()
			defer r.mu.Unlock()
			last, measured := r.used[t.id]
			switch {
			case err == nil && r.allocs[cluster.AllocID(alloc)] == a:
				r.used[t.id] = usage
			case measured && driver.ClassOf(err) == driver.Deadline:
				return last, nil
			}
			return usage, err
		}
	}
	return driver.Usage{}, fmt.Errorf("task %q does not run", task)
}

const (
	// sampleWindow is the interval over which the use of processors is measured.
	sampleWindow = 200 * time.Millisecond
	// sampleTimeout is the timeout of one measurement.
	sampleTimeout = 2 * time.Second
)

// sample measures a task. A driver computes processor time from two measurements, so its first
// report may have none. sample returns the second report if it arrives in time.
func sample(ctx context.Context, d driver.Driver, id driver.TaskID) (driver.Usage, error) {
	ctx, enough := context.WithTimeout(ctx, sampleTimeout)
	defer enough()
	var last driver.Usage
	reports := 0
	err := d.Stats(ctx, id, sampleWindow, func(u driver.Usage) {
		last = u
		if reports++; reports == 2 {
			enough()
		}
	})
	switch {
	case reports > 0:
		return last, nil
	case err != nil:
		return last, err
	}
	return last, fmt.Errorf("task %s has ended", id)
}
