package main

import (
	"slices"
	"testing"

	"github.com/shoenig/test/must"
)

// Each rule, with its error message.
func TestOrder(t *testing.T) {
	t.Parallel()
	const staging, rw = "/staging", "/target"
	on := map[string]accessMode{"a": singleWriter}
	staged := []mountRecord{{Node: "a", Path: staging}, {Node: "a", Path: "/other"}}
	published := append(slices.Clone(staged), mountRecord{Node: "a", Path: rw, Staging: staging})
	for _, c := range []struct {
		name     string
		on       map[string]accessMode
		mounts   []mountRecord
		call     call
		expected string
	}{
		{"stage first", nil, nil, call{Name: nodeStage, Node: "a", Staging: staging}, "not published to the node a by a controller"},
		{"stage elsewhere", on, nil, call{Name: nodeStage, Node: "b", Staging: staging}, "not published to the node b"},
		{"stage", on, nil, call{Name: nodeStage, Node: "a", Staging: staging}, ""},
		{"stage again", on, published, call{Name: nodeStage, Node: "a", Staging: staging}, ""},
		{"publish unattached", nil, staged, call{Name: nodePublish, Node: "a", Staging: staging, Target: rw}, "not published to the node a"},
		{"publish unstaged", on, nil, call{Name: nodePublish, Node: "a", Staging: staging, Target: rw}, "not staged at /staging"},
		{"publish from another path", on, staged, call{Name: nodePublish, Node: "a", Staging: "/wrong", Target: rw}, "not staged at /wrong"},
		{"publish from a target", on, published, call{Name: nodePublish, Node: "a", Staging: rw, Target: "/new"}, "not staged at /target"},
		{"publish", on, staged, call{Name: nodePublish, Node: "a", Staging: staging, Target: rw}, ""},
		{"publish again", on, published, call{Name: nodePublish, Node: "a", Staging: staging, Target: rw}, ""},
		{"unpublish nothing", nil, nil, call{Name: nodeUnpublish, Node: "a", Target: rw}, ""},
		{"unstage published", on, published, call{Name: nodeUnstage, Node: "a", Staging: staging}, "still published at /target"},
		{"unstage another path", on, published, call{Name: nodeUnstage, Node: "a", Staging: "/other"}, ""},
		{"unstage beside another node", on, published, call{Name: nodeUnstage, Node: "b", Staging: staging}, ""},
		{"unstage nothing", nil, nil, call{Name: nodeUnstage, Node: "a", Staging: staging}, ""},
		{"detach staged", on, staged, call{Name: controllerUnpublish, Node: "a"}, "still mounted on the node a at /staging"},
		{"detach published", on, published[2:], call{Name: controllerUnpublish, Node: "a"}, "still mounted on the node a at /target"},
		{"detach beside another node", on, published, call{Name: controllerUnpublish, Node: "b"}, ""},
		{"detach all", on, staged, call{Name: controllerUnpublish}, "still mounted on the node a"},
		{"detach nothing", nil, nil, call{Name: controllerUnpublish, Node: "a"}, ""},
		{"delete attached", on, nil, call{Name: deleteVolume}, "still published to the node a by a controller"},
		{"delete staged", nil, staged, call{Name: deleteVolume}, "still mounted on the node a at /staging"},
		{"delete", nil, nil, call{Name: deleteVolume}, ""},
		{"create", on, published, call{Name: createVolume}, ""},
		{"attach a second node", on, published, call{Name: controllerPublish, Node: "b"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			why := c.call.outOfOrder(c.on, c.mounts)
			must.Eq(t, c.expected == "", why == "", must.Sprint(why))
			must.StrContains(t, why, c.expected)
		})
	}
}
