package variables

import (
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// OfTask reports whether the client sets a variable in the environment of a task, beside the variables of the
// job and of devices.
func OfTask(j *cluster.Job, g *cluster.TaskGroup, t *cluster.Task, name string) bool {
	switch name {
	case "NOMAD_ALLOC_DIR", "NOMAD_TASK_DIR", "NOMAD_SECRETS_DIR", "NOMAD_ALLOC_ID", "NOMAD_SHORT_ALLOC_ID", "NOMAD_ALLOC_NAME", "NOMAD_ALLOC_INDEX",
		"NOMAD_TASK_NAME", "NOMAD_GROUP_NAME", "NOMAD_JOB_ID", "NOMAD_JOB_NAME", "NOMAD_NAMESPACE", "NOMAD_DC", "NOMAD_REGION":
		return true
	case "NOMAD_CPU_LIMIT":
		return t.Resources.CPU > 0
	case "NOMAD_MEMORY_LIMIT":
		return t.Resources.MemoryMB > 0
	case "CSI_ENDPOINT":
		return t.CSIPlugin != nil
	}
	if meta, is := strings.CutPrefix(name, "NOMAD_META_"); is {
		return hasMeta(j.Meta, meta) || hasMeta(g.Meta, meta) || hasMeta(t.Meta, meta)
	}
	return false
}

func hasMeta(meta map[string]string, name string) bool {
	for key := range meta { //lint:order the result is the same in each order
		if key = MetaName(key); name == key || name == strings.ToUpper(key) {
			return true
		}
	}
	return false
}

// MetaName returns a key of meta as names of variables have it: a character that is no letter, digit or
// underscore is an underscore.
func MetaName(key string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, key)
}
