package node

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// A task sees a volume by a link below its folder or by a mount, or is refused with a message.
func TestViews(t *testing.T) {
	t.Parallel()
	hostFiles, own := driver.Capabilities{}, driver.Capabilities{FSIsolation: driver.FSImage}
	request := cluster.VolumeRequest{Name: "disk", Source: "data", PerAlloc: true, Capability: manyWriters}
	readOnly := request
	readOnly.ReadOnly = true
	alloc := &cluster.Allocation{ID: "a", Namespace: "default", Name: "j.g[2]"}
	target := storage.TargetPath("/v", "a", cluster.VolumeKey{Namespace: "default", ID: "data[2]"}, storage.Usage{VolumeCapability: manyWriters})
	for _, c := range []struct {
		name    string
		request cluster.VolumeRequest
		mount   cluster.VolumeMount
		driver  driver.Capabilities
		link    string
		to      string
		refused string
	}{
		{name: "link", request: request, mount: cluster.VolumeMount{Destination: "local/data/"}, link: "local/data"},
		{name: "absolute link", request: request, mount: cluster.VolumeMount{Destination: "/srv"}, refused: `the destination must be a path below the folder of the task, such as "local/data", and not "/srv"`},
		{name: "link outside", request: request, mount: cluster.VolumeMount{Destination: "../other"}, refused: "below the folder of the task"},
		{name: "the folder itself", request: request, mount: cluster.VolumeMount{Destination: "./"}, refused: "below the folder of the task"},
		{name: "read-only link", request: request, mount: cluster.VolumeMount{Destination: "x", ReadOnly: true}, refused: "the driver d cannot keep its tasks from writing"},
		{name: "read-only volume", request: readOnly, mount: cluster.VolumeMount{Destination: "x", ReadOnly: true}, link: "x"},
		{name: "mount", request: request, mount: cluster.VolumeMount{Destination: "/srv", ReadOnly: true}, driver: own, to: "/srv"},
		{name: "relative mount", request: request, mount: cluster.VolumeMount{Destination: "srv"}, driver: own, refused: "must be an absolute path in the task"},
		{name: "no mounts", request: request, mount: cluster.VolumeMount{Destination: "/srv"}, driver: driver.Capabilities{FSIsolation: driver.FSImage, NoMounts: true}, refused: "the driver d has no mounts"},
		{name: "unknown volume", request: cluster.VolumeRequest{Name: "other"}, mount: cluster.VolumeMount{Destination: "x"}, driver: hostFiles, refused: `the group has no volume "disk"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.mount.Volume = "disk"
			all, err := views("/v", alloc, &cluster.TaskGroup{Volumes: []cluster.VolumeRequest{c.request}}, &cluster.Task{VolumeMounts: []cluster.VolumeMount{c.mount}}, "d", c.driver)
			if c.refused != "" {
				must.ErrorContains(t, err, c.refused)
				return
			}
			must.NoError(t, err)
			must.SliceLen(t, 1, all)
			must.EqOp(t, c.link, all[0].link)
			if c.to == "" {
				must.Nil(t, all[0].mount)
			} else {
				must.Eq(t, &driver.Mount{TaskPath: c.to, HostPath: target, ReadOnly: true}, all[0].mount)
			}
			if !c.request.ReadOnly {
				must.EqOp(t, target, all[0].target)
			}
		})
	}
	_, err := views("/v", alloc, &cluster.TaskGroup{Volumes: []cluster.VolumeRequest{request}}, &cluster.Task{VolumeMounts: []cluster.VolumeMount{
		{Volume: "disk", Destination: "x"}, {Volume: "disk", Destination: "./x"},
	}}, "d", hostFiles)
	must.ErrorContains(t, err, `another volume has the destination "./x"`)
}
