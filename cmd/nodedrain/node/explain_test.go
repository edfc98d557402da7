package node

import (
	"regexp"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// A reason to stop names what each task waits for.
func TestNodeExplain_waits(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a := wire.DrainAlloc{Detail: "stopping, may take 20s", Waiting: map[string]*wire.TaskWait{
		"server": {For: "grace", Until: wire.NewTime(now.Add(10 * time.Second))},
		"driver": {For: "driver", Detail: "raw_exec does not answer"},
	}}
	must.RegexMatch(t, regexp.MustCompile(`^stopping, may take 20s; task "driver" waits for driver: raw_exec does not answer; task "server" waits for grace until \S+ \(\S+ left\)$`), detailCell(a))

	held := wire.DrainAlloc{Reason: rules.ReasonHeldForVolumes.String(), Detail: "waits for volume default/data", Waiting: map[string]*wire.TaskWait{
		"plugin": {For: string(cluster.WaitVolume), Detail: "volume default/data must be unpublished"},
	}}
	must.Eq(t, `waits for volume default/data; task "plugin" waits for volume`, detailCell(held), must.Sprint("the volume is named once"))
	must.Eq(t, "grace until "+cli.Clock(wire.NewTime(now)), cli.WaitText(&wire.TaskWait{For: "grace", Until: wire.NewTime(now)}, now), must.Sprint("the grace is over"))
}

// One allocation is no plural. Without access control a drain has no author.
func TestDrainFacts(t *testing.T) {
	t.Parallel()
	p := &wire.DrainProgress{Ignored: 2}
	p.Left.Consumers, p.Left.StoragePlugins = 1, 1
	must.Eq(t, "1 consumer, 0 system, 1 storage plugin; 2 left by request", stagesText(p))
	must.Eq(t, "", cli.Author(httpapi.AnonymousName))
	must.Eq(t, "ops", cli.Author("ops"))
}
