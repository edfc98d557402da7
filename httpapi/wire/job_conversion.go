package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Job returns the job with its defaults filled in. It refuses volumes under two names, devices other than GPUs
// of tasks without a driver, and numbers that are too large. A task without resources needs none. A restart
// policy or a log configuration that equals the default becomes nil.
//
// Package jobfields warns of the fields that are not kept, and refuses some. [cluster.Job.Validate] checks
// whether the job can run.
func (w *Job) Job() (*cluster.Job, error) {
	j := &cluster.Job{
		Namespace: cluster.Namespace(orZero(w.Namespace)), ID: cluster.JobID(orZero(w.ID)), Type: cluster.JobType(orZero(w.Type)),
		Priority: orZero(w.Priority), NodePool: orZero(w.NodePool), Datacenters: anywhere(w.Datacenters),
		Meta: w.Meta,
		Stop: orZero(w.Stop), Version: orZero(w.Version),
		CreateIndex: orZero(w.CreateIndex), ModifyIndex: orZero(w.ModifyIndex), JobModifyIndex: orZero(w.JobModifyIndex),
	}
	if j.Type == "" {
		j.Type = cluster.JobService
	}
	c := conversion{job: w, kind: j.Type}
	constraints, distinct, err := splitDistinct(w.Constraints)
	if err != nil {
		return nil, err
	}
	j.DistinctHosts = distinct
	j.Constraints, c.ofClasses = splitConstraints(constraints)
	for i, g := range w.TaskGroups {
		if g == nil {
			return nil, fmt.Errorf("Task group %d is missing", i)
		}
		group, err := c.group(g)
		if err != nil {
			return nil, fmt.Errorf("Task group %q: %w", orZero(g.Name), err)
		}
		j.TaskGroups = append(j.TaskGroups, group)
	}
	j.Canonicalize()
	return j, nil
}

// InRegion replaces ${node.region} in constraints by the region of the servers, in which all nodes are. The state has no
// regions.
func (w *Job) InRegion(region string) {
	replace := func(constraints []Constraint) {
		for i := range constraints {
			for _, side := range []*string{&constraints[i].LTarget, &constraints[i].RTarget} {
				if *side == "${node.region}" {
					*side = region
				}
			}
		}
	}
	replace(w.Constraints)
	for _, g := range w.TaskGroups {
		if g == nil {
			continue
		}
		replace(g.Constraints)
		for _, t := range g.Tasks {
			if t != nil {
				replace(t.Constraints)
			}
		}
	}
}

// anywhere is the list of datacenters, empty if it names all.
func anywhere(datacenters []string) []string {
	if slices.Contains(datacenters, "*") {
		return nil
	}
	return datacenters
}

// conversion makes the groups of one job.
type conversion struct {
	job  *Job
	kind cluster.JobType
	// ofClasses are the job's constraints on node classes, which belong to each group.
	ofClasses []Constraint
}

func (c *conversion) group(w *TaskGroup) (*cluster.TaskGroup, error) {
	g := &cluster.TaskGroup{
		Name: orZero(w.Name), Count: 1, Migrate: c.migrate(w), Update: c.update(w.Update), Reschedule: c.reschedulePolicy(w.ReschedulePolicy), ShutdownDelay: orZero(w.ShutdownDelay), MaxRunDuration: orZero(w.MaxRunDuration), Meta: w.Meta,
	}
	var err error
	if g.Volumes, err = volumesOf(w.Volumes); err != nil {
		return nil, err
	}
	if g.Ports, err = portRequests(w.Networks); err != nil {
		return nil, err
	}
	base := orZero(c.job.ID) + "-" + g.Name
	if g.Services, err = servicesOf(w.Services, base); err != nil {
		return nil, err
	}
	g.RestartPolicy = w.RestartPolicy.policy(cluster.DefaultRestartPolicy(c.kind))
	if w.Count != nil {
		g.Count = *w.Count
	}
	if g.Disconnect, err = disconnectOf(w); err != nil {
		return nil, err
	}
	if d := w.EphemeralDisk; d != nil {
		g.EphemeralDisk = cluster.EphemeralDisk{Sticky: orZero(d.Sticky), Migrate: orZero(d.Migrate), SizeMB: orZero(d.SizeMB)}
	}
	var constraints, ofClasses []Constraint
	if constraints, g.DistinctHosts, err = splitDistinct(w.Constraints); err != nil {
		return nil, err
	}
	g.Constraints, ofClasses = splitConstraints(constraints)
	ofClasses = slices.Concat(c.ofClasses, ofClasses)
	for i, t := range w.Tasks {
		if t == nil {
			return nil, fmt.Errorf("Task %d is missing", i)
		}
		task, err := taskOf(t, g.RestartPolicyOf(nil, c.kind))
		if err == nil {
			task.Services, err = servicesOf(t.Services, base+"-"+t.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("Task %q: %w", t.Name, err)
		}
		if slices.ContainsFunc(t.Constraints, func(c Constraint) bool { return c.Operand == distinctHosts }) {
			return nil, fmt.Errorf("Task %q: Constraint %q belongs to the job or the group", t.Name, distinctHosts)
		}
		var onClass []Constraint
		task.Constraints, onClass = splitConstraints(t.Constraints)
		ofClasses = append(ofClasses, onClass...)
		g.Tasks = append(g.Tasks, task)
	}
	g.NodeClasses, err = classesOf(ofClasses)
	return g, err
}

// taskOf converts a task of a group with the restart policy.
func taskOf(w *Task, restart cluster.RestartPolicy) (*cluster.Task, error) {
	resources, devices, err := w.needs()
	if err != nil {
		return nil, err
	}
	config, err := canonicalConfig(w.Config)
	if err != nil {
		return nil, err
	}
	mounts, err := mountsOf(w.VolumeMounts)
	if err != nil {
		return nil, err
	}
	t := &cluster.Task{
		Name: w.Name, Resources: resources, Devices: devices, KillTimeout: orZero(w.KillTimeout), ShutdownDelay: w.ShutdownDelay,
		StoragePlugin: w.CSIPluginConfig != nil, CSIPlugin: w.CSIPluginConfig.plugin(), VolumeMounts: mounts,
		Driver: w.Driver, Config: config, Env: w.Env, User: w.User, Leader: w.Leader, KillSignal: w.KillSignal, Meta: w.Meta,
		RestartPolicy: w.RestartPolicy.policy(restart), LogConfig: w.LogConfig.logs(),
	}
	if w.Resources != nil {
		t.Cores, t.MemoryMaxMB = int(orZero(w.Resources.Cores)), orZero(w.Resources.MemoryMaxMB)
		if cpu := int64(t.Cores) * cluster.CPUOfCore; t.Cores > 0 && t.Resources.CPU != 0 && t.Resources.CPU != cpu {
			return nil, fmt.Errorf("cpu is %d, and the %d cores of the task count as %d: cores replace cpu, so leave it out", t.Resources.CPU, t.Cores, cpu)
		}
		if t.Ports, err = portRequests(w.Resources.Networks); err != nil {
			return nil, err
		}
	}
	if l := w.Lifecycle; l != nil {
		t.Lifecycle = &cluster.Lifecycle{Hook: cluster.Hook(l.Hook), Sidecar: l.Sidecar}
	}
	return t, nil
}

// needs returns the resources of the task, and its devices if it has a driver.
func (w *Task) needs() (r cluster.Resources, devices []cluster.DeviceRequest, err error) {
	if w.Driver == "" {
		r, err = w.Resources.counted()
		return r, nil, err
	}
	if w.Resources != nil {
		devices, err = deviceRequests(w.Resources.Devices)
	}
	return w.Resources.resources(), devices, err
}

// canonicalConfig returns the driver's configuration without blanks and with sorted keys, or nil if it
// is empty. Equal configurations have equal bytes, whichever client sent them.
func canonicalConfig(config json.RawMessage) (json.RawMessage, error) {
	if len(config) == 0 {
		return nil, nil
	}
	if why := unreadable(config); why != "" {
		return nil, errors.New(why)
	}
	decoder := json.NewDecoder(bytes.NewReader(config))
	decoder.UseNumber() // keeps large and long numbers
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("Config is not JSON: %w", err)
	}
	canonical, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("Config is not JSON: %w", err)
	}
	if text := string(canonical); text == "null" || text == "{}" {
		return nil, nil
	}
	return canonical, nil
}

// policy returns the policy over another one, or nil if both are equal.
func (w *RestartPolicy) policy(over cluster.RestartPolicy) *cluster.RestartPolicy {
	if w == nil {
		return nil
	}
	p := over
	override(&p.Attempts, w.Attempts)
	override(&p.Interval, w.Interval)
	override(&p.Delay, w.Delay)
	if w.Mode != nil {
		p.Mode = cluster.RestartMode(*w.Mode)
	}
	if p == over {
		return nil
	}
	return &p
}

// logs returns the bounds, or nil if they are the default ones.
func (w *LogConfig) logs() *cluster.LogConfig {
	if w == nil {
		return nil
	}
	l := cluster.DefaultLogConfig()
	override(&l.MaxFiles, w.MaxFiles)
	override(&l.MaxFileSizeMB, w.MaxFileSizeMB)
	if l == cluster.DefaultLogConfig() {
		return nil
	}
	return &l
}

func override[T int | time.Duration](value *T, by *T) {
	if by != nil {
		*value = *by
	}
}

const distinctHosts = "distinct_hosts"

// splitDistinct separates the constraint that keeps allocations on different nodes. Its right side is a boolean,
// or missing for true.
func splitDistinct(constraints []Constraint) (others []Constraint, distinct bool, err error) {
	for _, c := range constraints {
		if c.Operand != distinctHosts {
			others = append(others, c)
			continue
		}
		is, err := strconv.ParseBool(cmp.Or(c.RTarget, "true"))
		if err != nil {
			return nil, false, fmt.Errorf("Constraint %q: %q must be true or false", distinctHosts, c.RTarget)
		}
		distinct = distinct || is
	}
	return others, distinct, nil
}

func distinctConstraint(distinct bool) []Constraint {
	if !distinct {
		return nil
	}
	return []Constraint{{Operand: distinctHosts, RTarget: "true"}}
}

// splitConstraints separates the constraints that name the allowed node classes: every cluster
// version has these. The operands of the others get their first names.
func splitConstraints(constraints []Constraint) (others []cluster.Constraint, ofClasses []Constraint) {
	for _, c := range constraints {
		if c.classes() != nil {
			ofClasses = append(ofClasses, c)
			continue
		}
		others = append(others, c.constraint())
	}
	return others, ofClasses
}

// constraint returns the constraint with the first name of its operand.
func (w Constraint) constraint() cluster.Constraint {
	switch w.Operand {
	case "==", "is", "":
		w.Operand = cluster.OperandEqual
	case "not":
		w.Operand = cluster.OperandNotEqual
	case "set_contains_all":
		w.Operand = cluster.OperandSetContains
	}
	return cluster.Constraint(w)
}

// classesOf are the node classes that the constraints allow, nil for all.
func classesOf(constraints []Constraint) ([]string, error) {
	var classes []string
	for _, one := range constraints {
		allowed := one.classes()
		if classes == nil {
			classes = allowed
			continue
		}
		classes = slices.DeleteFunc(classes, func(class string) bool { return !slices.Contains(allowed, class) })
		if len(classes) == 0 {
			return nil, errors.New("no node can have the class that its constraints require")
		}
	}
	return classes, nil
}

// nodeClass is the target that names a node's class.
const nodeClass = "${node.class}"

// classes are the node classes that the constraint allows, or nil if it is about another attribute.
func (w Constraint) classes() []string {
	if w.LTarget != nodeClass {
		return nil
	}
	switch w.Operand {
	case "", "=", "==", "is":
		return []string{w.RTarget}
	case "set_contains_any":
		classes := strings.Split(w.RTarget, ",")
		for i := range classes {
			classes[i] = strings.TrimSpace(classes[i])
		}
		return classes
	}
	return nil
}

// classConstraints are the constraints that allow these node classes alone; none for
// none.
func classConstraints(classes []string) []Constraint {
	switch len(classes) {
	case 0:
		return nil
	case 1:
		return []Constraint{{LTarget: nodeClass, Operand: "=", RTarget: classes[0]}}
	}
	return []Constraint{{LTarget: nodeClass, Operand: "set_contains_any", RTarget: strings.Join(classes, ",")}}
}
