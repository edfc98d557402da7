// Package limits checks the sizes and the numbers of registrations. Begin with [Job].
package limits

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonbody"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonscan"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Limits of registrations over HTTP. The state machine does not check these: jobs that an older server
// has accepted stay valid in logs, in snapshots and in clients. [cluster.Job.Validate] has the limits
// that the state machine checks too.
const (
	// maxConfigDepth bounds the nesting of the config of a task.
	maxConfigDepth = jsonbody.MaxDepth - 16 // a config in a job is below six levels
	// maxCopiesBytes bounds the configs, environments, meta maps, constraints and devices of a job,
	// times its counts: each allocation holds a copy of its job, in answers and on the disks of clients.
	maxCopiesBytes = 256 << 20
	// maxDatacenters bounds the datacenters of a job.
	maxDatacenters = 100
	// maxNodeMap bounds the entries of each map of facts of a node.
	maxNodeMap = 4096
)

// Job returns the first limit that the job exceeds, with the place in the job, or nil.
func Job(w *wire.Job) error {
	if len(w.Datacenters) > maxDatacenters {
		return fmt.Errorf("job: datacenters: at most %d but found %d", maxDatacenters, len(w.Datacenters))
	}
	for i, name := range w.Datacenters {
		if len(name) > cluster.MaxIDBytes {
			return fmt.Errorf("job: datacenters: name %d has %d bytes, at most %d", i, len(name), cluster.MaxIDBytes)
		}
	}
	if err := cmp.Or(checkConstraintLimits(w.Constraints), checkTexts("meta", w.Meta, cluster.MaxMapEntries, cluster.MaxIDBytes)); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	for i, g := range w.TaskGroups {
		if g == nil {
			continue
		}
		name := orEmpty(g.Name)
		if len(name) > cluster.MaxIDBytes {
			return fmt.Errorf("group %d: the name has %d bytes, at most %d", i, len(name), cluster.MaxIDBytes)
		}
		if err := cmp.Or(checkGroupLimits(placeOf("group", name, i), g), checkEnvironments(placeOf("group", name, i), w, g)); err != nil {
			return err
		}
	}
	return nil
}

func checkGroupLimits(place string, w *wire.TaskGroup) error {
	err := cmp.Or(checkConstraintLimits(w.Constraints), checkTexts("meta", w.Meta, cluster.MaxMapEntries, cluster.MaxIDBytes),
		checkKeys("volumes", w.Volumes, cluster.MaxMapEntries, cluster.MaxIDBytes))
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	for i, t := range w.Tasks {
		if t == nil {
			continue
		}
		if len(t.Name) > cluster.MaxIDBytes {
			return fmt.Errorf("%s, task %d: the name has %d bytes, at most %d", place, i, len(t.Name), cluster.MaxIDBytes)
		}
		if err := checkTaskLimits(t); err != nil {
			return fmt.Errorf("%s, %s: %w", place, placeOf("task", t.Name, i), err)
		}
	}
	return nil
}

// placeOf is a group or a task in an error: its name, or its index if it has none.
func placeOf(what, name string, index int) string {
	if name == "" {
		return fmt.Sprintf("%s %d", what, index)
	}
	return fmt.Sprintf("%s %q", what, name)
}

func checkTaskLimits(w *wire.Task) error {
	if depth := jsonscan.Depth(w.Config); depth > maxConfigDepth {
		return fmt.Errorf("config is nested %d levels deep, at most %d", depth, maxConfigDepth)
	}
	if wire.LeftOut(w.Config) {
		return errors.New("config comes from an answer that leaves out the real one: give the real one")
	}
	return cmp.Or(checkConstraintLimits(w.Constraints), checkTexts("env", w.Env, cluster.MaxMapEntries, cluster.MaxIDBytes), checkVariables(w.Env), checkTexts("meta", w.Meta, cluster.MaxMapEntries, cluster.MaxIDBytes))
}

// checkVariables refuses an environment that no process can have.
func checkVariables(env map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(env)) {
		switch {
		case key == "" || strings.ContainsAny(key, "=\x00"):
			return fmt.Errorf("env: %q is no name of a variable: it is empty, or contains \"=\" or a NUL", key)
		case strings.Contains(env[key], "\x00"):
			return fmt.Errorf("env: the value of %s contains a NUL", failure.Quoted(key))
		}
	}
	return nil
}

// checkEnvironments refuses tasks with too large an environment: clients do not start them. The client adds
// variables of its own, and checks the whole.
func checkEnvironments(place string, job *wire.Job, w *wire.TaskGroup) error {
	shared := metaBytes(job.Meta) + metaBytes(w.Meta, job.Meta)
	for i, t := range w.Tasks {
		if t == nil {
			continue
		}
		size := shared + metaBytes(t.Meta, w.Meta, job.Meta)
		for name, value := range t.Env {
			size += len(name) + len(value)
		}
		if size > cluster.MaxTaskEnvBytes {
			return fmt.Errorf("%s, %s: env, and twice the meta of the job, the group and the task, have %d bytes, at most %d",
				place, placeOf("task", t.Name, i), size, cluster.MaxTaskEnvBytes)
		}
	}
	return nil
}

// metaBytes is what a meta map adds to an environment that has the variables of the others. An entry replaces
// that of the first of the others with the key.
func metaBytes(meta map[string]string, others ...map[string]string) (size int) {
	for key, value := range meta {
		size += entryBytes(key, value)
		for _, other := range others {
			if replaced, is := other[key]; is {
				size -= entryBytes(key, replaced)
				break
			}
		}
	}
	return size
}

// entryBytes is the size of the two variables of an entry of a meta map. One has the key in capital letters, and
// may be the same.
func entryBytes(key, value string) int {
	size := len("NOMAD_META_") + len(key) + len(value)
	if strings.ToUpper(key) == key {
		return size
	}
	return 2 * size
}

// checkConstraintLimits counts constraints on node classes too, which become a list of classes.
func checkConstraintLimits(constraints []wire.Constraint) error {
	if len(constraints) > cluster.MaxConstraints {
		return fmt.Errorf("constraints: at most %d but found %d", cluster.MaxConstraints, len(constraints))
	}
	for i, c := range constraints {
		if most := max(len(c.LTarget), len(c.RTarget), len(c.Operand)); most > cluster.MaxConstraintBytes {
			return fmt.Errorf("constraint %d: a part has %d bytes, at most %d", i, most, cluster.MaxConstraintBytes)
		}
	}
	return nil
}

// checkKeys checks the number and the length of the keys of a map.
func checkKeys[V any](what string, m map[string]V, entries, bytes int) error {
	if len(m) > entries {
		return fmt.Errorf("%s: at most %d entries but found %d", what, entries, len(m))
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if len(key) > bytes {
			return fmt.Errorf("%s: the key %s has %d bytes, at most %d", what, failure.Quoted(key), len(key), bytes)
		}
	}
	return nil
}

// checkTexts is checkKeys for a map of texts, and also checks the length of these.
func checkTexts(what string, m map[string]string, entries, bytes int) error {
	if err := checkKeys(what, m, entries, bytes); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if len(m[key]) > cluster.MaxMapValueBytes {
			return fmt.Errorf("%s: the value of %s has %d bytes, at most %d", what, failure.Quoted(key), len(m[key]), cluster.MaxMapValueBytes)
		}
	}
	return nil
}

// Node returns the first limit that the facts of a node exceed, or nil. A client that the
// servers refuse loses its tasks, so the limits are far above what clients report.
func Node(n *cluster.Node) error {
	for _, one := range []struct{ what, name string }{{"datacenter", n.Datacenter}, {"node class", n.NodeClass}, {"node pool", n.NodePool}} {
		if len(one.name) > cluster.MaxIDBytes {
			return fmt.Errorf("the %s has %d bytes, at most %d", one.what, len(one.name), cluster.MaxIDBytes)
		}
	}
	return cmp.Or(
		checkTexts("attributes", n.Attributes, maxNodeMap, cluster.MaxMapValueBytes),
		checkTexts("meta", n.Meta, maxNodeMap, cluster.MaxMapValueBytes),
		checkTexts("links", n.Links, maxNodeMap, cluster.MaxMapValueBytes),
	)
}

// Counts refuses a job for every node that has several allocations on each, and a job whose
// allocations hold too many bytes together.
func Counts(j *cluster.Job) error {
	count := 0
	for _, g := range j.TaskGroups {
		count += g.Count
		if j.Type.EveryNode() && g.Count > 1 {
			of := fmt.Sprintf("Task group %q", g.Name)
			return fmt.Errorf("%s: Count of a %s job must be 0 or 1 but found %d", of, j.Type, g.Count)
		}
	}
	if size := j.TextBytes(); count > 1 && size > maxCopiesBytes/count {
		return fmt.Errorf("the job has %d bytes of Config, Env, Meta, Constraints and Devices, and each of its %d allocations holds a copy: at most %d bytes together", size, count, maxCopiesBytes)
	}
	return nil
}
