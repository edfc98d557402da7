package drain

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// StopsFirst are lines that name the groups which max_surge does not concern, with the reason. It is empty if there are
// none.
type StopsFirst []string

// stopsFirstHead is the line above the groups.
const stopsFirstHead = "max_surge has no effect on these groups. Their allocations stop before their replacements start:"

// add adds a group, once.
func (s *StopsFirst) add(namespace, job, group, why string) {
	if line := "  " + cli.SingleLine(cli.JobName(namespace, job)+"."+group+": "+why); why != "" && !slices.Contains(*s, line) {
		*s = append(*s, line)
	}
}

// Lines are the lines, with one above them.
func (s StopsFirst) Lines() []string {
	if len(s) == 0 {
		return nil
	}
	slices.Sort(s)
	return append([]string{stopsFirstHead}, s...)
}

// StopsFirstOnNode returns the groups of the allocations left on a draining node.
func StopsFirstOnNode(left []wire.DrainAlloc) (s StopsFirst) {
	for _, a := range left {
		s.add(a.Namespace, a.JobID, a.TaskGroup, a.StopsFirst)
	}
	return s
}

// StopsFirstAmong returns the groups of the allocations that have not ended and that a drain with a max_surge would move.
func StopsFirstAmong(allocs []*wire.Allocation) (s StopsFirst) {
	jobs := map[[2]string]*cluster.Job{} // each job once: it may be large
	for _, a := range allocs {
		ended := a.ClientStatus != string(cluster.ClientPending) && a.ClientStatus != string(cluster.ClientRunning)
		if ended || a.Job == nil || a.Job.Type != nil && *a.Job.Type != string(cluster.JobService) {
			continue
		}
		key := [2]string{a.Namespace, a.JobID}
		j, read := jobs[key]
		if !read {
			j, _ = a.Job.Job() // the servers have checked it; a job of a later build may have more
			jobs[key] = j
		}
		if g := j.Group(a.TaskGroup); g != nil {
			s.add(a.Namespace, a.JobID, a.TaskGroup, cluster.StopsFirst(g))
		}
	}
	return s
}
