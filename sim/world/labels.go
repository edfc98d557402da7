package world

import (
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// allocLabel is the group's label with an index and a node: "job.group[index]@node".
func allocLabel(a *cluster.Allocation) string {
	index := a.Name[strings.LastIndexByte(a.Name, '[')+1:]
	return fmt.Sprintf("%s[%s@%s", GroupLabel(a.GroupKey()), index, a.NodeID)
}

// GroupLabel is "job.group" without the default namespace, and without a group of the job's name.
func GroupLabel(g cluster.GroupKey) string {
	if g.Name == string(g.Job.ID) {
		return jobLabel(g.Job)
	}
	return jobLabel(g.Job) + "." + g.Name
}

func jobLabel(k cluster.JobKey) string {
	if k.Namespace == cluster.DefaultNamespace {
		return string(k.ID)
	}
	return k.String()
}

func describeJob(j *cluster.Job) string {
	parts := []string{jobLabel(j.Key())}
	for _, g := range j.TaskGroups {
		text := fmt.Sprintf("%s count %d", g.Name, g.Count)
		if g.Migrate != nil {
			text += fmt.Sprintf(" max_parallel %d", g.Migrate.MaxParallel)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func describeSpec(s cluster.DrainSpec) string {
	text := "no deadline"
	switch {
	case s.Deadline > 0:
		text = "deadline " + s.Deadline.String()
	case s.Deadline < 0:
		text = "force"
	}
	if s.IgnoreSystemJobs {
		text += ", without system jobs"
	}
	return text
}
