package storage_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/client/volume/volumetest"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// The environment variables socketVariable and volumeVariable name the socket of a running storage
// plugin and an unused volume of it.
const (
	socketVariable = "NODEDRAIN_CSI_SOCKET"
	volumeVariable = "NODEDRAIN_CSI_VOLUME"
)

// given is a node whose storage plugin already runs.
type given struct {
	volumetest.Host
	plugin *storage.Plugin
	volume string
}

var _ volumetest.Node = (*given)(nil)

func (g *given) Plugin() volumetest.Plugin { return g.plugin }

func (g *given) Restart(t volumetest.T) {
	t.Fatalf("this test has not started the plugin of the volume %s", g.volume)
}

// Volume attaches the volume to the node if the plugin is also a controller.
func (g *given) Volume(t volumetest.T) volume.Claimed {
	claimed := volume.Claimed{ExternalID: g.volume}
	d, err := g.plugin.Describe(t.Context(), cluster.PluginMonolith)
	if err != nil || !d.Attaches {
		return claimed // it has no controller
	}
	a := storage.Attachment{
		ExternalID: g.volume, NodeID: d.NodeID,
		Capability: cluster.VolumeCapability{Access: cluster.MultiNodeMultiWriter, Attachment: cluster.AttachFileSystem},
	}
	if claimed.PublishContext, err = g.plugin.Attach(t.Context(), a); err != nil {
		t.Fatalf("attaching the volume: %v", err)
	}
	t.Cleanup(func() {
		if err := g.plugin.Detach(context.WithoutCancel(t.Context()), a); err != nil {
			t.Errorf("detaching the volume: %v", err)
		}
	})
	return claimed
}

// The plugin in the environment variables passes the conformance suite.
func TestPlugin_givenSocket(t *testing.T) {
	path, id := os.Getenv(socketVariable), os.Getenv(volumeVariable)
	if path == "" || id == "" {
		t.Skipf("%s and %s name no storage plugin with a volume", socketVariable, volumeVariable)
	}
	volumetest.Run(t, volumetest.Harness{
		OneByOne: true, Skips: map[string]string{"S8": "this test has not started the plugin"},
		New: func(t volumetest.T) volumetest.Node {
			p, err := storage.Connect(path)
			if err != nil {
				t.Fatalf("connecting to the plugin: %v", err)
			}
			t.Cleanup(func() { _ = p.Close() })
			folder, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatalf("a folder: %v", err)
			}
			return &given{volumetest.Host{Folder: folder}, p, id}
		},
	})
}
