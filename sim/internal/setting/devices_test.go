package setting_test

import (
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// The allocations that exist at the beginning get matching devices that no other allocation has. An
// ended allocation gets none, and neither does one on a node that the servers do not have.
func TestEquip_initialAllocations(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Parse("case.drain", strings.NewReader(`# why
node n1 devices=gpu:2:memory=16GiB,acme/gpu/small:1:memory=4GiB
node n2 absent devices=gpu:1
job web count=4 devices=gpu:1:memory>=8GiB
alloc web[0..1] on=n1
alloc web[2] on=n1 client=failed
alloc web[3] on=n2
at 0s drain n1
`))
	must.NoError(t, err)
	nodes := setting.Nodes(s.Nodes[0])
	must.NoError(t, nodes[0].CheckDevices())
	job := setting.Job(s, s.Jobs[0])
	must.NoError(t, job.Validate())
	ids := 0
	allocs := setting.JobAllocs(s.Allocs, job, time.Unix(0, 0), func() cluster.AllocID { ids++; return "a" })
	must.NoError(t, setting.Equip(nodes, allocs))
	var assigned []string
	for _, a := range allocs {
		if a.Devices == nil {
			assigned = append(assigned, "")
			continue
		}
		assigned = append(assigned, a.Devices.All[0].Kind.String()+"/"+a.Devices.All[0].IDs[0])
	}
	must.Eq(t, []string{"acme/gpu/one/gpu0", "acme/gpu/one/gpu1", "", ""}, assigned)

	allocs[2].ClientStatus = cluster.ClientRunning
	must.ErrorContains(t, setting.Equip(nodes, allocs), "web.web[2]: n1 does not have its devices")
}
