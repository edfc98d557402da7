package volumes_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
)

// waiting are claims of volumes of the plugin "disks", by volume and allocation.
type waiting struct {
	claims []*cluster.VolumeClaim
	nodes  []*cluster.Node
}

func (w waiting) Claims() iter.Seq[*cluster.VolumeClaim] { return slices.Values(w.claims) }
func (w waiting) Nodes() iter.Seq[*cluster.Node]         { return slices.Values(w.nodes) }
func (w waiting) Volume(k cluster.VolumeKey) *cluster.Volume {
	if k.ID == "gone" {
		return nil
	}
	return &cluster.Volume{Namespace: k.Namespace, ID: k.ID, Plugin: "disks"}
}

// parseClaim reads "volume allocation node state", optionally followed by "controller" or
// "attached".
func parseClaim(line string) *cluster.VolumeClaim {
	f := append(strings.Fields(line), "")
	states := map[string]cluster.ClaimState{"taken": cluster.ClaimTaken, "unpublishing": cluster.ClaimUnpublishing, "off": cluster.ClaimNodeDetached}
	c := &cluster.VolumeClaim{
		Volume: cluster.VolumeKey{ID: cluster.VolumeID(f[0])}, Alloc: cluster.AllocID(f[1]), Node: cluster.NodeID(f[2]), State: states[f[3]],
		Controller: f[4] != "", Attached: f[4] == "attached", ExternalNodeID: "ext-" + f[2],
	}
	if c.Attached {
		c.PublishContext = map[string]string{"device": "sdb"}
	}
	return c
}

func controllerNode(id cluster.NodeID, edit func(*cluster.Node, *cluster.StoragePlugin)) *cluster.Node {
	p := &cluster.StoragePlugin{ID: "disks", Type: cluster.PluginMonolith, Healthy: true, Attaches: true}
	n := &cluster.Node{ID: id, Status: cluster.NodeReady, StoragePlugins: []*cluster.StoragePlugin{p}}
	edit(n, p)
	return n
}

// Which calls are due, and which claims need no call.
func TestDue(t *testing.T) {
	t.Parallel()
	same := func(*cluster.Node, *cluster.StoragePlugin) {}
	for name, test := range map[string]struct {
		claims []string
		want   []string
	}{
		"nothing":                                {nil, nil},
		"no controller attaches the volumes":     {[]string{"v a n1 taken", "v b n2 off"}, nil},
		"the first claim on a node":              {[]string{"v a n1 taken controller"}, []string{"attach v n1 ext-n1 for a"}},
		"two claims, one call":                   {[]string{"v a n1 taken controller", "v b n1 taken controller"}, []string{"attach v n1 ext-n1 for a b"}},
		"one call for each node":                 {[]string{"v a n2 taken controller", "v b n1 taken controller"}, []string{"attach v n1 ext-n1 for b", "attach v n2 ext-n2 for a"}},
		"it is attached":                         {[]string{"v a n1 taken attached"}, nil},
		"it is attached for another":             {[]string{"v a n1 taken attached", "v b n1 taken controller"}, []string{"shared v b sdb"}},
		"it ends before it is attached":          {[]string{"v a n1 unpublishing controller"}, nil},
		"it ended before it was attached":        {[]string{"v a n1 off controller"}, []string{"detach v n1 ext-n1 for a"}},
		"the node has detached":                  {[]string{"v a n1 off attached"}, []string{"detach v n1 ext-n1 for a"}},
		"the node has detached two":              {[]string{"v a n1 off attached", "v b n1 off attached"}, []string{"detach v n1 ext-n1 for a b"}},
		"the node has not detached yet":          {[]string{"v a n1 unpublishing attached"}, nil},
		"another allocation still uses it":       {[]string{"v a n1 off attached", "v b n1 taken attached"}, nil},
		"another allocation still unmounts it":   {[]string{"v a n1 off attached", "v b n1 unpublishing attached"}, nil},
		"another one uses it, not by controller": {[]string{"v a n1 off attached", "v b n1 taken"}, nil},
		"another node uses it":                   {[]string{"v a n1 off attached", "v b n2 taken attached"}, []string{"detach v n1 ext-n1 for a"}},
		"two volumes":                            {[]string{"v a n1 off attached", "w b n1 taken controller"}, []string{"detach v n1 ext-n1 for a", "attach w n1 ext-n1 for b"}},
		"the volume is deregistered":             {[]string{"gone a n1 off attached"}, nil},
	} {
		w := waiting{nodes: []*cluster.Node{
			controllerNode("n3", same), controllerNode("n1", same),
			controllerNode("down", func(n *cluster.Node, _ *cluster.StoragePlugin) { n.Status = cluster.NodeDown }),
			controllerNode("unhealthy", func(_ *cluster.Node, p *cluster.StoragePlugin) { p.Healthy = false }),
			controllerNode("mounts only", func(_ *cluster.Node, p *cluster.StoragePlugin) { p.Type = cluster.PluginNode }),
			controllerNode("makes only", func(_ *cluster.Node, p *cluster.StoragePlugin) { p.Attaches = false }),
			controllerNode("of another plugin", func(_ *cluster.Node, p *cluster.StoragePlugin) { p.ID = "other" }),
		}}
		for _, line := range test.claims {
			w.claims = append(w.claims, parseClaim(line))
		}
		calls, shared := volumes.Due(w)
		var got []string
		for _, c := range calls {
			verb, cause := "attach", cluster.CauseAttached
			if c.Detach {
				verb, cause = "detach", cluster.CauseDetached
			}
			line := fmt.Sprintf("%s %s %s %s for", verb, c.Volume.ID, c.Node, c.ExternalNodeID)
			for _, ch := range c.Changes(nil) {
				must.EqOp(t, cause, ch.Cause)
				must.EqOp(t, c.Node, ch.Node)
				line += " " + string(ch.Claim.Alloc)
			}
			got = append(got, line)
			must.Eq(t, []cluster.NodeID{"n1", "n3"}, c.Controllers, must.Sprint(name))
		}
		for _, ch := range shared {
			must.EqOp(t, cluster.CauseAttached, ch.Cause)
			got = append(got, fmt.Sprintf("shared %s %s %s", ch.Claim.Volume.ID, ch.Claim.Alloc, ch.PublishContext["device"]))
		}
		must.Eq(t, test.want, got, must.Sprint(name))
	}
}

// Each failure moves to the next controller.
func TestCall_controller(t *testing.T) {
	t.Parallel()
	c := &volumes.Call{Controllers: []cluster.NodeID{"n1", "n3"}}
	must.Eq(t, []cluster.NodeID{"n1", "n3", "n1"}, []cluster.NodeID{c.Controller(0), c.Controller(1), c.Controller(2)})
	must.Eq(t, "", new(volumes.Call).Controller(7))
}
