package machine

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// Adopt starts the tasks of allocations that run at the start of the simulation, and writes the
// records of an earlier client. Call it before the first client starts. These tasks start without
// delay.
func (n *Node) Adopt(clusterID string, allocs []*cluster.Allocation) error {
	if len(allocs) == 0 {
		return nil
	}
	drivers := map[string]*scripted.Driver{}
	for _, name := range n.options.Drivers {
		n.programs[name].Launch(func(d *scripted.Driver, err error) {
			if err == nil {
				drivers[name] = d
			}
		})
	}
	if _, err := n.Advance(n.clock.now); err != nil {
		return err
	}
	n.adopting = true
	defer func() { n.adopting = false }()
	n.equipment.adopt(allocs)
	if _, err := n.Advance(n.clock.now); err != nil {
		return err
	}
	for _, a := range allocs {
		adopt(n, clusterID, a, drivers)
	}
	_, err := n.Advance(n.clock.now)
	return err
}

func adopt(n *Node, clusterID string, a *cluster.Allocation, drivers map[string]*scripted.Driver) {
	rec := &client.Record{
		Alloc: a.Copy(), ClusterID: clusterID, BootID: n.BootID(), Received: n.boot(), RunBegan: n.boot(), ClientStatus: cluster.ClientRunning,
	}
	if a.HasVerdict() {
		healthy := a.JudgedHealthy()
		rec.Healthy, rec.HealthyAt = &healthy, a.DeploymentStatus.Timestamp
	}
	n.disk[a.ID] = rec
	n.volumes.adopt(a)
	group := a.Job.Group(a.TaskGroup)
	if group == nil {
		return
	}
	for _, task := range group.Tasks {
		state := cluster.TaskState{Name: task.Name, State: cluster.TaskPending}
		rec.Tasks = append(rec.Tasks, client.TaskRecord{State: state, HostCgroup: !n.options.Containers})
		t := &rec.Tasks[len(rec.Tasks)-1]
		switch {
		case task.Poststop():
		case task.Lifecycle != nil && !task.Lifecycle.Sidecar:
			t.Phase, t.State.State = client.PhaseDead, cluster.TaskDead
			t.State.StartedAt, t.State.FinishedAt = a.CreateTime, a.CreateTime.Add(time.Second)
		case drivers[task.Driver] != nil:
			t.Phase, t.ID, t.RunningSince = client.PhaseStarting, n.newTaskID(a.ID, task.Name), n.boot()
			n.machine.MakeCgroup(cgroup(a.ID, task.Name))
			index := len(rec.Tasks) - 1
			n.volumes.starts(t.ID, a, task.Name)
			config := taskConfig(n, t.ID, a, task.Name)
			config.Devices = n.equipment.reserve(t.ID, a, task.Name)
			drivers[task.Driver].Start(config, func(h driver.Handle, err error) {
				if t := &rec.Tasks[index]; err == nil {
					t.Phase, t.Handle = client.PhaseRunning, h
					t.State.State, t.State.StartedAt = cluster.TaskRunning, a.CreateTime
				}
			})
		}
	}
}

// taskConfig returns the configuration for the start of a task.
func taskConfig(n *Node, id driver.TaskID, a *cluster.Allocation, task string) *driver.TaskConfig {
	config := &driver.TaskConfig{
		ID: id, Name: task, AllocID: string(a.ID), GroupName: a.TaskGroup, JobID: string(a.JobID), NodeID: string(n.options.ID),
		Resources: driver.Resources{Cgroup: cgroup(a.ID, task), Cores: a.Cores.Of(task).String()},
	}
	if a.Ports != nil {
		for _, p := range a.Ports.All {
			config.Resources.Ports = append(config.Resources.Ports, driver.Port{Label: p.Label, Number: p.Number, HostIP: a.Ports.IP})
		}
	}
	return config
}
