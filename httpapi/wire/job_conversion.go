package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Job returns the job with its defaults filled in, and warnings about parts without effect:
// constraints on anything but equality of ${node.class}, affinities and spreads. It refuses parts
// that it cannot honour: a periodic or parameterized job, a job of several regions, and numbers
// that are too large.
//
// It ignores without a warning: fields for clients only (drivers, services, volumes, templates,
// networks, restarts), and updates and rescheduling, which the reference command fills in for every
// job. A task without resources needs none.
//
// [cluster.Job.Validate] checks whether the job can run.
func (w *Job) Job() (job *cluster.Job, warnings []string, err error) {
	if err := w.unsupported(); err != nil {
		return nil, nil, err
	}
	j := &cluster.Job{
		Namespace: cluster.Namespace(orZero(w.Namespace)), ID: cluster.JobID(orZero(w.ID)), Type: cluster.JobType(orZero(w.Type)),
		Priority: orZero(w.Priority), NodePool: orZero(w.NodePool), Datacenters: anywhere(w.Datacenters),
		Stop: orZero(w.Stop), Version: orZero(w.Version),
		CreateIndex: orZero(w.CreateIndex), ModifyIndex: orZero(w.ModifyIndex), JobModifyIndex: orZero(w.JobModifyIndex),
	}
	if j.Type == "" {
		j.Type = cluster.JobService
	}
	c := conversion{job: w, service: j.Type == cluster.JobService}
	for i, g := range w.TaskGroups {
		if g == nil {
			return nil, nil, fmt.Errorf("Task group %d is missing", i)
		}
		group, err := c.group(g)
		if err != nil {
			return nil, nil, fmt.Errorf("Task group %q: %w", orZero(g.Name), err)
		}
		j.TaskGroups = append(j.TaskGroups, group)
	}
	if len(w.Affinities) > 0 || len(w.Spreads) > 0 {
		c.warn("affinities and spreads have no effect")
	}
	j.Canonicalize()
	slices.Sort(c.warnings)
	return j, slices.Compact(c.warnings), nil
}

func (w *Job) unsupported() error {
	switch {
	case w.Periodic != nil:
		return errors.New("periodic jobs are not supported")
	case w.ParameterizedJob != nil:
		return errors.New("parameterized jobs are not supported")
	case w.Multiregion != nil:
		return errors.New("jobs of several regions are not supported")
	}
	return nil
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
	job      *Job
	service  bool
	warnings []string
}

func (c *conversion) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

func (c *conversion) group(w *TaskGroup) (*cluster.TaskGroup, error) {
	g := &cluster.TaskGroup{
		Name: orZero(w.Name), Count: 1, Migrate: c.migrate(w.Migrate), ShutdownDelay: orZero(w.ShutdownDelay),
		Disconnect: cluster.DisconnectStrategy{LostAfter: orZero(w.MaxClientDisconnect)},
	}
	if w.Count != nil {
		g.Count = *w.Count
	}
	if w.Disconnect != nil && w.Disconnect.LostAfter != nil {
		g.Disconnect.LostAfter = *w.Disconnect.LostAfter
	}
	if d := w.EphemeralDisk; d != nil {
		g.EphemeralDisk = cluster.EphemeralDisk{Sticky: orZero(d.Sticky), Migrate: orZero(d.Migrate), SizeMB: orZero(d.SizeMB)}
	}
	if len(w.Affinities) > 0 || len(w.Spreads) > 0 {
		c.warn("affinities and spreads have no effect")
	}
	constraints := slices.Concat(c.job.Constraints, w.Constraints)
	for i, t := range w.Tasks {
		if t == nil {
			return nil, fmt.Errorf("Task %d is missing", i)
		}
		task, err := c.task(t)
		if err != nil {
			return nil, fmt.Errorf("Task %q: %w", t.Name, err)
		}
		g.Tasks = append(g.Tasks, task)
		constraints = append(constraints, t.Constraints...)
	}
	var err error
	g.NodeClasses, err = c.classes(constraints)
	return g, err
}

func (c *conversion) task(w *Task) (*cluster.Task, error) {
	resources, err := w.Resources.resources()
	if err != nil {
		return nil, err
	}
	if len(w.Affinities) > 0 {
		c.warn("affinities and spreads have no effect")
	}
	return &cluster.Task{
		Name: w.Name, Resources: resources, KillTimeout: orZero(w.KillTimeout), ShutdownDelay: w.ShutdownDelay,
		StoragePlugin: w.CSIPluginConfig != nil,
	}, nil
}

// migrate fills a group's block from the job's and from the defaults. A job that is not a service
// keeps its block, so that validation refuses it.
func (c *conversion) migrate(w *MigrateStrategy) *cluster.MigrateStrategy {
	if w == nil && c.job.Migrate == nil {
		return nil
	}
	m := cluster.DefaultMigrateStrategy()
	for _, block := range []*MigrateStrategy{c.job.Migrate, w} {
		if block == nil {
			continue
		}
		override(&m.MaxParallel, block.MaxParallel)
		override(&m.MinHealthyTime, block.MinHealthyTime)
		override(&m.HealthyDeadline, block.HealthyDeadline)
		if block.HealthCheck != nil {
			m.HealthCheck = cluster.HealthCheck(*block.HealthCheck)
		}
	}
	return m
}

func override[T int | time.Duration](value *T, by *T) {
	if by != nil {
		*value = *by
	}
}

// classes are the node classes that the constraints allow, nil for all.
func (c *conversion) classes(constraints []Constraint) ([]string, error) {
	var classes []string
	for _, one := range constraints {
		allowed := one.classes()
		switch {
		case allowed == nil:
			c.warn("the constraint %q %s %q has no effect", one.LTarget, one.Operand, one.RTarget)
		case classes == nil:
			classes = allowed
		default:
			classes = slices.DeleteFunc(classes, func(class string) bool { return !slices.Contains(allowed, class) })
			if len(classes) == 0 {
				return nil, errors.New("no node can have the class that its constraints require")
			}
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
