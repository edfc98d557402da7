//race:skip one goroutine
package attributes_test

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// attribute draws one of any kind, often with zero values, which the codec leaves out.
func attribute(t *rapid.T) cluster.DeviceAttribute {
	a := cluster.DeviceAttribute{Kind: cluster.AttributeKind(rapid.IntRange(0, 3).Draw(t, "kind"))}
	switch a.Kind {
	case cluster.AttributeInt:
		a.Int = int64(rapid.IntRange(0, 2).Draw(t, "int"))
		a.Unit = rapid.SampledFrom([]string{"", "GiB", "W"}).Draw(t, "unit")
	case cluster.AttributeFloat:
		a.Float = rapid.SampledFrom([]float64{0, 12.5}).Draw(t, "float")
		a.Unit = rapid.SampledFrom([]string{"", "MB/s"}).Draw(t, "unit")
	case cluster.AttributeBool:
		a.Bool = rapid.Bool().Draw(t, "bool")
	default:
		a.Text = rapid.SampledFrom([]string{"", "raw"}).Draw(t, "text")
	}
	return a
}

func node(t *rapid.T) *cluster.Node {
	n := &cluster.Node{ID: "n1", SecretID: "s", Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeEligible, Attributes: map[string]string{"os": "linux"}}
	for i := range rapid.IntRange(0, 3).Draw(t, "groups") {
		g := &cluster.DeviceGroup{Kind: cluster.DeviceKind{Vendor: "v", Type: "image", Name: strconv.Itoa(i)}, Devices: []cluster.Device{{ID: "a", Healthy: true}}}
		for j := range rapid.IntRange(0, 5).Draw(t, "attributes") {
			if g.Attributes == nil {
				g.Attributes = map[string]cluster.DeviceAttribute{}
			}
			g.Attributes[strconv.Itoa(j)] = attribute(t)
		}
		n.Devices = append(n.Devices, g)
	}
	must.NoError(t, n.CheckDevices())
	return n
}

// No attribute has a value of another one, in an entry of the log and in a snapshot.
func TestAttributes_comeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := node(t)
		data, err := shims.Encode(&shims.NodeRegister{Node: n})
		must.NoError(t, err)
		m, err := shims.Decode(data)
		must.NoError(t, err)
		must.Eq(t, n.Devices, m.(*shims.NodeRegister).Node.Devices, must.Sprint("the entry"))

		s := statestore.New()
		txn := s.Begin(1)
		txn.RaiseClusterVersion(cluster.MaxVersion)
		must.NoError(t, txn.UpsertNode(n.Copy(), m.(*shims.NodeRegister).At))
		txn.Commit()
		var b bytes.Buffer
		must.NoError(t, statestore.Persist(&b, s.Snapshot()))
		back, err := statestore.Restore(&b)
		must.NoError(t, err)
		must.Eq(t, n.Devices, back.Snapshot().Node("n1").Devices, must.Sprint("the snapshot"))
	})
}
