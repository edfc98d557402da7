package volume_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// A volume is registered again by force while one allocation has it mounted, and a second one claims it. The second
// one never gets the old volume: it is refused while the first one stays, and waits while the first one leaves.
// Bug: the second allocation ran on the volume of the first one, under the new claim.
func TestVolumes_registeredAgainForASecondAllocation(t *testing.T) {
	for name, again := range map[string]storage.Claimed{
		"another plugin":      {Plugin: "other", ExternalID: "ext"},
		"another external id": {Plugin: "disks", ExternalID: "new"},
	} {
		for _, stages := range []bool{true, false} {
			for when, meanwhile := range map[string]func(*node){"": func(*node) {}, "restart": (*node).crash} {
				t.Run(name+map[bool]string{true: " staged ", false: " "}[stages]+when, func(t *testing.T) {
					n := newNode(t)
					n.stages = stages
					n.setAway(false)
					up := func() {
						n.volumes.PluginUp("other", volume.Plugin{Stages: stages})
						n.run(time.Minute)
					}
					up()
					n.mount("a", "data")
					n.run(time.Minute)
					n.registered = again
					n.mount("b", "data")
					n.run(time.Minute)
					both := `the external id "ext-data" of the storage plugin "disks" is still on the node, and the claim is for "` +
						again.ExternalID + `-data" of "` + string(again.Plugin) + `"`
					check := func() {
						must.False(t, n.volumes.Status("b").Ready)
						must.StrContains(t, texts(n.volumes.Status("b").Waits)[0], "volume default/data cannot be mounted yet: "+both)
					}
					check()
					must.EqError(t, n.volumes.Status("b").Failed, "volume default/data: "+both)
					meanwhile(n)
					up()
					check()
					n.storage.MakeBusy(target("a", "data"), storage.Holder{PID: 17, Command: "tail"})
					n.leaves("a", time.Minute)
					check()
					must.NoError(t, n.volumes.Status("b").Failed)
					meanwhile(n)
					up()
					check()

					n.storage.Free(target("a", "data"))
					n.run(time.Minute)
					must.True(t, n.volumes.Status("b").Ready)
					n.end("b")
					for _, c := range n.called {
						want := "disks ext-data"
						if c.Request.Alloc == "b" || c.Verb == storage.Stage && c.Claimed.ExternalID != "ext-data" {
							want = string(again.Plugin) + " " + again.ExternalID + "-data"
						}
						if c.Verb != storage.Unstage {
							must.EqOp(t, want, string(c.Plugin)+" "+c.ExternalID, must.Sprint(c.Verb, " ", c.Request.Alloc))
						}
					}
				})
			}
		}
	}
}
