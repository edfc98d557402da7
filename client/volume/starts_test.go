package volume_test

import (
	"errors"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A storage plugin that fails keeps what it has reported: its name, version, capabilities and the id of the node stay in
// the state of the servers. Only its health changes.
func TestStart_Probed(t *testing.T) {
	t.Parallel()
	now, down := time.Now(), errors.New("no answer")
	found := cluster.StoragePlugin{
		Type: cluster.PluginMonolith, Provider: "disks", Version: "2", NodeID: "node-7", MaxVolumes: 3, Stages: true, Attaches: true, ReadOnlyAttaches: true,
		Topology: cluster.Topology{Segments: map[string]string{"rack": "r1"}},
	}
	var starts volume.Starts[struct{}]
	p := &volume.Start[struct{}]{ID: "a/plugin/1", Alloc: "a", Task: "plugin", Config: cluster.CSIPlugin{ID: "p", Type: cluster.PluginMonolith, HealthTimeout: time.Minute}}
	starts.Add(p, now)
	for _, c := range []struct {
		after            time.Duration
		err              error
		known            bool // whether the plugin has answered
		wait             time.Duration
		restart, changed bool
		description      string
	}{
		{10 * time.Second, down, false, time.Second, false, true, "no answer"}, // the timeout counts from the start
		{11 * time.Second, down, false, time.Second, false, false, "no answer"},
		{time.Minute, down, false, time.Second, true, false, "no answer"},
		{61 * time.Second, nil, true, volume.ProbeInterval, false, true, "healthy"},
		{91 * time.Second, nil, true, volume.ProbeInterval, false, false, "healthy"},
		{2 * time.Minute, down, true, time.Second, false, true, "no answer"},
		{3 * time.Minute, down, true, time.Second, true, false, "no answer"},
		{181 * time.Second, errors.New("not ready"), true, time.Second, false, true, "not ready"},
		{182 * time.Second, nil, true, volume.ProbeInterval, false, true, "healthy"},
	} {
		var answer *cluster.StoragePlugin
		if c.err == nil {
			answer = found.Copy()
		}
		wait, restart, changed := p.Probed(answer, c.err, now.Add(c.after))
		must.Eq(t, c.wait, wait, must.Sprint(c))
		must.Eq(t, c.restart, restart, must.Sprint(c))
		must.Eq(t, c.changed, changed, must.Sprint(c))

		_, all := starts.Report("p")
		must.Len(t, 1, all)
		expected := &cluster.StoragePlugin{Type: cluster.PluginMonolith}
		if c.known {
			expected = found.Copy()
		}
		expected.ID, expected.Alloc, expected.Healthy, expected.HealthDescription = "p", "a", c.err == nil, c.description
		all[0].UpdateTime = time.Time{}
		must.Eq(t, expected, all[0], must.Sprint(c))
		must.Eq(t, c.err == nil, starts.Newest("p", cluster.PluginType.Controller) != nil)
	}
}
