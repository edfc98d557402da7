package node

import (
	"regexp"
	"strings"
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

// Below the table, each cause is named once, with the command that shows more. Allocations that are the
// cause themselves share an entry. The ids are short, unless the command is verbose.
func TestNodeExplain_causes(t *testing.T) {
	t.Parallel()
	const sick, web = "3f2a9b01-aaaa-bbbb-cccc-000000000000", "f9d9c52a-aaaa-bbbb-cccc-00000000000"
	left := func(id, reason, cause, see string) wire.DrainAlloc {
		return wire.DrainAlloc{ID: id, Reason: reason, Cause: cause, See: see}
	}
	waits := func(id string) wire.DrainAlloc {
		return left(id, "waiting for room", "alloc "+sick+" on node-7 has no health verdict yet, and 1 more", "nodedrain alloc status "+sick)
	}
	allocs := []wire.DrainAlloc{
		waits(web + "1"), waits(web + "2"), left("a1", "write pending", "", ""),
		left("b1", "stopping", "", "nodedrain alloc status b1"), left("b2", "stopping", "", "nodedrain alloc status b2"),
	}
	print := func(verbose bool) string {
		var out strings.Builder
		printCauses(&out, allocs, verbose)
		return out.String()
	}
	must.Eq(t, `
Causes
f9d9c52a and 1 more: waiting for room
  alloc 3f2a9b01 on node-7 has no health verdict yet, and 1 more
  see: nodedrain alloc status 3f2a9b01
b1 and 1 more: stopping
  see: nodedrain alloc status b1
`, print(false))
	must.StrContains(t, print(true), "  see: nodedrain alloc status "+sick+"\n")
	allocs = nil
	must.Eq(t, "", print(false))
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
