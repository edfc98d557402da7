//race:skip one goroutine
package setting_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// The last matching line decides, for lines of one job and for lines of all jobs.
func TestClients_Behaviour(t *testing.T) {
	t.Parallel()
	selectors := []string{"web", "*", "api.main[0]", "@n1", "web[1]", "web@n2", "db", "@n3"}
	var clients []scenario.Client
	for i, text := range selectors {
		match, err := scenario.ParseSelector(text)
		must.NoError(t, err)
		stop := time.Duration(i+1) * time.Second
		clients = append(clients, scenario.Client{Match: match, Stop: &scenario.Range{Min: stop, Max: stop}})
	}
	indexed := setting.NewClients(clients)
	for _, job := range []cluster.JobID{"web", "api", "db", "other"} {
		for _, node := range []cluster.NodeID{"n1", "n2", "n3", "n4"} {
			for index := range 3 {
				a := &cluster.Allocation{
					Namespace: cluster.DefaultNamespace, JobID: job, TaskGroup: "main", NodeID: node,
					Name: fmt.Sprintf("%s.main[%d]", job, index),
				}
				want := setting.Default()
				for _, c := range clients {
					if c.Match.Matches(a) {
						want.Stop = c.Stop.Min
					}
				}
				must.Eq(t, want, indexed.Behaviour(a, nil), must.Sprint(a.Name, "@", node))
			}
		}
	}
	moved := &cluster.Allocation{Namespace: cluster.DefaultNamespace, JobID: "web", TaskGroup: "main", NodeID: "n2", Name: "web.main[0]"}
	must.Eq(t, 6*time.Second, indexed.Behaviour(moved, nil).Stop)
	must.Eq(t, setting.Default(), setting.NewClients(nil).Behaviour(&cluster.Allocation{JobID: "web"}, nil))
}
