package main

import (
	"os"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	adapter "github.com/seed-f9cf0b39/nodedrain/plugin/storage/csi"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/storagetest"
)

// conformingNode implements storagetest.Node for a process of the plugin.
type conformingNode struct {
	storagetest.Host
	machine machine
	test    *testing.T
	program *program
	plugin  *adapter.Plugin
}

var _ storagetest.Node = (*conformingNode)(nil)

func newConformingNode(t *testing.T) *conformingNode {
	n := &conformingNode{machine: newMachine(t), test: t}
	n.Folder = n.machine.path("volumes")
	must.NoError(t, os.Mkdir(n.Folder, 0o700))
	n.start()
	return n
}

func (n *conformingNode) start() {
	n.program = n.machine.start(n.test)
	var err error
	n.plugin, err = adapter.Connect(n.machine.path("csi.sock"))
	must.NoError(n.test, err)
	n.test.Cleanup(func() { _ = n.plugin.Close() })
}

func (n *conformingNode) Plugin() storagetest.Plugin { return n.plugin }

func (n *conformingNode) Restart(storagetest.T) {
	must.NoError(n.test, n.plugin.Close())
	n.program.kill(n.test)
	n.start()
}

func (n *conformingNode) Volume(storagetest.T) storage.Claimed {
	created, err := n.program.CreateVolume(n.test.Context(), &csi.CreateVolumeRequest{
		Name: "tested", VolumeCapabilities: []*csi.VolumeCapability{capability(manyWriters), capability(singleWriter)},
	})
	must.NoError(n.test, err)
	info, err := n.program.NodeGetInfo(n.test.Context(), &csi.NodeGetInfoRequest{})
	must.NoError(n.test, err)
	attached, err := n.program.ControllerPublishVolume(n.test.Context(), &csi.ControllerPublishVolumeRequest{
		VolumeId: created.GetVolume().GetVolumeId(), NodeId: info.GetNodeId(), VolumeCapability: capability(manyWriters),
	})
	must.NoError(n.test, err)
	return storage.Claimed{ExternalID: created.GetVolume().GetVolumeId(), Context: created.GetVolume().GetVolumeContext(), PublishContext: attached.GetPublishContext()}
}

// The plugin passes the conformance suite, on a real socket with real mounts.
func TestPlugin_conformance(t *testing.T) {
	t.Parallel()
	needMounts(t)
	storagetest.Run(t, storagetest.Harness{Strict: true, New: func(storagetest.T) storagetest.Node { return newConformingNode(t) }})
}
