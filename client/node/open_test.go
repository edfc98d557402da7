package node

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/fingerprint"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
)

// A storage plugin is restarted, and its volumes stay mounted. Bug: the node lost its limits for
// volumes with its last plugin, so that an exclusive claim on a lost node was freed too early.
func TestDescribe_limitsForVolumes(t *testing.T) {
	t.Parallel()
	c := &config.Config{Limits: config.Limits{HoldLimit: 7 * time.Minute}}
	limits := func(s Servers) (before, without [2]time.Duration) {
		o := newContact(describe(c, identity{ID: "n1"}, &fingerprint.Machine{Attributes: map[string]string{}}, cgroup.Hierarchies{}, s), s, quiet())
		read := func() [2]time.Duration { return [...]time.Duration{o.newest().VolumeAllowance, o.newest().HoldLimit} }
		before = read()
		o.publishStorage([]*cluster.StoragePlugin{{ID: "disks", Type: cluster.PluginNode, Healthy: true}})
		must.SliceLen(t, 1, o.newest().StoragePlugins)
		o.publishStorage(nil)
		return before, read()
	}
	expected := [...]time.Duration{7 * time.Minute, 7 * time.Minute}
	before, without := limits(new(httpServers))
	must.Eq(t, expected, before)
	must.Eq(t, expected, without)
	before, _ = limits(new(scripted)) // it gives no claims
	must.Eq(t, [2]time.Duration{}, before)
}

// The attributes of the compute follow the configuration, as the capacity does, and those of control groups follow what
// the client uses.
func TestDescribe_attributes(t *testing.T) {
	t.Parallel()
	groups, err := cgroup.Find("/")
	must.NoError(t, err)
	c := &config.Config{Resources: cluster.Resources{CPU: 3000}, Reserved: cluster.Resources{CPU: 500}}
	m := &fingerprint.Machine{Attributes: map[string]string{"kernel.name": "linux"}, Resources: cluster.Resources{CPU: 8000}, Cores: cluster.Cores{0, 2, 3}}
	c.ReservedCores = cluster.Cores{0}
	n := describe(c, identity{ID: "n1"}, m, groups, new(httpServers))
	expected := map[string]string{"kernel.name": "linux", "cpu.totalcompute": "3000", "cpu.usablecompute": "2500", "cpu.reservablecores": "0"}
	if groups.Pins() {
		expected["cpu.reservablecores"] = "2"
	}
	switch groups.Kind() {
	case "v1":
		expected["unique.cgroup.version"], expected["os.cgroups.version"], expected["unique.cgroup.parent"] = "v1", "1", "/nomad"
	case "v2":
		expected["unique.cgroup.version"], expected["os.cgroups.version"], expected["unique.cgroup.parent"] = "v2", "2", "nomad.slice"
	}
	must.Eq(t, expected, n.Attributes)
}
