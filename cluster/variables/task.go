package variables

import (
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// ParentCgroup is the attribute of a node with control groups that names the group above those of tasks. The client sets
// NOMAD_PARENT_CGROUP to its value.
const ParentCgroup = "unique.cgroup.parent"

// OfTask reports whether the client sets a variable in the environment of a task, beside the variables of the
// job and of devices, and beside NOMAD_PARENT_CGROUP. Without a task it reports whether the client sets it for the checks
// of the group that belong to no task.
func OfTask(j *cluster.Job, g *cluster.TaskGroup, t *cluster.Task, name string) bool {
	ofTask := t != nil
	if !ofTask {
		t = &cluster.Task{}
	}
	switch name {
	case "NOMAD_ALLOC_DIR", "NOMAD_TASK_DIR", "NOMAD_SECRETS_DIR", "NOMAD_TASK_NAME":
		return ofTask
	case "NOMAD_ALLOC_ID", "NOMAD_SHORT_ALLOC_ID", "NOMAD_ALLOC_NAME", "NOMAD_ALLOC_INDEX",
		"NOMAD_GROUP_NAME", "NOMAD_JOB_ID", "NOMAD_JOB_NAME", "NOMAD_NAMESPACE", "NOMAD_DC", "NOMAD_REGION":
		return true
	case "NOMAD_CPU_LIMIT":
		return t.Resources.CPU > 0
	case "NOMAD_CPU_CORES":
		return t.Cores > 0
	case "NOMAD_MEMORY_LIMIT":
		return t.Resources.MemoryMB > 0
	case "NOMAD_MEMORY_MAX_LIMIT":
		return t.MemoryMaxMB > 0
	case "CSI_ENDPOINT":
		return t.CSIPlugin != nil
	}
	if meta, is := strings.CutPrefix(name, "NOMAD_META_"); is {
		return hasMeta(j.Meta, meta) || hasMeta(g.Meta, meta) || hasMeta(t.Meta, meta)
	}
	rest, is := strings.CutPrefix(name, "NOMAD_")
	return is && isOfPort(g, t, rest)
}

func hasMeta(meta map[string]string, name string) bool {
	for key := range cluster.TaskMeta(meta) { //lint:order the result is the same in each order
		if key = cluster.VariableName(key); name == key || name == strings.ToUpper(key) {
			return true
		}
	}
	return false
}

// isOfPort reports whether a variable, without NOMAD_ at the beginning, is of a port that the group requests. Every task
// has those of the group's ports and of its own, and NOMAD_PORT_TASK_LABEL and its like of those of other tasks.
func isOfPort(g *cluster.TaskGroup, t *cluster.Task, variable string) bool {
	is := func(name string, kinds ...string) bool {
		for _, kind := range kinds {
			for _, of := range []string{"PORT_", "IP_", "ADDR_"} {
				if variable == kind+of+name {
					return true
				}
			}
		}
		return false
	}
	for task, port := range g.PortRequests() {
		label := cluster.VariableName(port.Label)
		own := task == "" || task == t.Name
		if own && is(label, "", "HOST_", "ALLOC_") || !own && is(cluster.VariableName(task)+"_"+label, "") {
			return true
		}
	}
	return false
}
