package onnode_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// A volume may wait for the end of a plugin that was requested to stop, because such a plugin mounts nothing
// more. Bug: the judge found that it is not mounted. A claim that is left does not wait for that.
func TestJudge_pluginThatStops(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.alloc.Devices = nil
	f.judge.Received(f.node, f.wanted())
	f.node.Storage().Adopt(request("a2"), storage.Claimed{Plugin: "disks", ExternalID: "ext"})
	f.advance(t, 6*time.Minute)
	f.node.Storage().Lose(storage.TargetPath(f.node.Storage().Root(), "a1", data, usage))
	f.stopPlugin()
	f.settled()
	var found []string
	for _, v := range f.judge.Violations() {
		found = append(found, v.Guarantee+" "+v.Check)
	}
	must.SliceContains(t, found, "N6 a claim is not released")
	must.SliceNotContains(t, found, "N6 a volume is not mounted")
}
