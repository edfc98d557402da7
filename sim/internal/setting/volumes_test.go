package setting_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// The rows of a scenario with volumes are valid, and the nodes report the storage plugins that run
// on them.
func TestVolumes(t *testing.T) {
	t.Parallel()
	s, warnings, err := scenario.Parse("case.drain", strings.NewReader(`# why
cluster clients=real hold=2m
node n1..n3
volume data plugin=disks access=multi-node-single-writer
volume own[0..1] plugin=disks
job disks type=system plugin=disks:unstaged
job attacher plugin=disks:controller
job web count=2 volumes=data:ro,own[]
alloc disks on=n1,n2
alloc attacher on=n2
alloc web[0] on=n1
at 0s drain n1
`))
	must.NoError(t, err)
	must.SliceEmpty(t, warnings)
	must.True(t, s.UsesVolumes())
	for _, d := range s.Volumes {
		for _, v := range setting.Volumes(d) {
			must.NoError(t, v.Validate())
			must.Eq(t, v, setting.DeclaredVolume(s, v.ID))
		}
	}
	web := setting.Job(s, s.Jobs[2])
	must.NoError(t, web.Validate())
	read := web.TaskGroups[0].Volumes[0]
	must.Eq(t, cluster.ClaimRead, read.Mode())
	must.Eq(t, cluster.MultiNodeSingleWriter, read.Capability.Access)
	must.Eq(t, "own[1]", web.TaskGroups[0].Volumes[1].VolumeOf("web.web[1]"))

	nodes := setting.Nodes(s.Nodes[0])
	ids := 0
	for _, j := range s.Jobs {
		var declared []scenario.Alloc
		for _, a := range s.Allocs {
			if a.Group.Job == j.Key {
				declared = append(declared, a)
			}
		}
		job := setting.Job(s, j)
		must.NoError(t, job.Validate())
		setting.Provide(s, nodes, setting.JobAllocs(declared, job, time.Unix(0, 0), func() cluster.AllocID {
			ids++
			return cluster.AllocID(fmt.Sprint("a", ids))
		}), time.Unix(0, 0))
	}
	var reported []string
	for _, n := range nodes {
		must.Eq(t, len(n.StoragePlugins) > 0, n.HoldLimit == 2*time.Minute)
		for _, p := range n.StoragePlugins {
			reported = append(reported, fmt.Sprintf("%s %s %s by %s, stages %v, needs %v, attaches %v", n.ID, p.Type, p.ID, p.Alloc, p.Stages, p.NeedsController, p.Attaches))
		}
	}
	must.Eq(t, []string{
		"n1 node disks by a1, stages false, needs true, attaches false", "n2 node disks by a2, stages false, needs true, attaches false",
		"n2 controller disks by a3, stages false, needs false, attaches true",
	}, reported)
}
