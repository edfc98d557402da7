package catalogue_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/catalogue"
)

// many is a state with many jobs.
type many struct {
	*rows
	jobs  []*cluster.Job
	byJob map[cluster.JobKey][]*cluster.Allocation
}

func (m *many) Jobs() iter.Seq[*cluster.Job] { return slices.Values(m.jobs) }
func (m *many) AllocsByJob(k cluster.JobKey) iter.Seq[*cluster.Allocation] {
	return slices.Values(m.byJob[k])
}

// BenchmarkRead reads one service of 1000 jobs with 10 allocations each.
func BenchmarkRead(b *testing.B) {
	for _, name := range []string{"web", "${NOMAD_JOB_NAME}", "${NOMAD_JOB_NAME}-${meta.rack}-${NOMAD_PORT_http}"} {
		b.Run(name, func(b *testing.B) {
			m := &many{rows: newRows(), byJob: map[cluster.JobKey][]*cluster.Allocation{}}
			for i := range 1000 {
				j := m.job.Copy()
				j.ID, j.TaskGroups[0].Services[0].Name = cluster.JobID(fmt.Sprint("job", i)), name
				m.jobs = append(m.jobs, j)
				for k := range 10 {
					a := *m.alloc
					a.ID, a.JobID, a.Job = cluster.AllocID(fmt.Sprint(i, "-", k)), j.ID, j
					m.byJob[j.Key()] = append(m.byJob[j.Key()], &a)
				}
			}
			for b.Loop() {
				list, _ := catalogue.Read(m, catalogue.Query{Within: func(cluster.Namespace) bool { return true }, Name: "job7"})
				must.LessEq(b, 10, len(list))
			}
		})
	}
}
