package storagetest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	drivers "github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/storagetest"
)

// double is a node with the double of storage, whose plugin is a task.
type double struct {
	loop    *drivers.Loop
	machine *drivers.Machine
	storage *scripted.Storage
	root    string
	plugin  storagetest.Plugin
}

var _ storagetest.Node = (*double)(nil)

func newDouble(t storagetest.T, stages bool) *double {
	d := &double{loop: drivers.NewLoop(), root: t.TempDir()}
	d.loop.Do(func() {
		d.machine = drivers.NewMachine(d.loop)
		d.storage = scripted.New(d.machine, d.loop, scripted.Options{
			Root: d.root, Stages: func(cluster.PluginID) bool { return stages },
			Claim: func(_ storage.Request, reply func(storage.Claimed, error)) {
				reply(storage.Claimed{Plugin: "disks", ExternalID: "ext"}, nil)
			},
			Release: func(_ storage.Request, reply func(error)) { reply(nil) },
		})
	})
	d.start(t)
	return d
}

// start starts the plugin's task.
func (d *double) start(t storagetest.T) {
	d.loop.Do(func() {
		if _, err := d.machine.Spawn(drivers.Process{Task: "plugin"}); err != nil {
			t.Errorf("starting the plugin: %v", err)
		}
	})
	d.plugin = &blockingPlugin{loop: d.loop, storage: d.storage, task: "plugin", id: "disks"}
}

func (d *double) Plugin() storagetest.Plugin { return d.plugin }

func (d *double) Root() string { return d.root }

func (d *double) Restart(t storagetest.T) {
	d.loop.Do(func() {
		for _, p := range d.machine.Living() {
			d.machine.Signal(p.Identity, drivers.SIGKILL, drivers.ByFault)
		}
	})
	d.start(t)
}

func (d *double) Volume(t storagetest.T) storage.Claimed {
	claimed := make(chan storage.Claimed, 1)
	d.loop.Do(func() {
		q := storage.Request{Alloc: "a", Volume: cluster.VolumeKey{Namespace: cluster.DefaultNamespace, ID: "tested"}}
		d.storage.Claim(q, func() bool { return true }, func(c storage.Claimed, err error) {
			if err != nil {
				t.Errorf("claiming a volume: %v", err)
			}
			claimed <- c
		})
	})
	return <-claimed
}

// mount returns the row of a path.
func (d *double) mount(path string) (row scripted.Mount, is bool) {
	d.loop.Do(func() {
		all := d.storage.Mounts()
		if i := slices.IndexFunc(all, func(m scripted.Mount) bool { return m.Path == path }); i >= 0 {
			row, is = all[i], true
		}
	})
	return row, is
}

func (d *double) Mounted(_ storagetest.T, path string) bool {
	_, is := d.mount(path)
	return is
}

func (d *double) Use(target string) error {
	switch m, is := d.mount(target); {
	case !is:
		return errors.New("nothing is mounted")
	case m.Usage.ReadOnly:
		return errors.New("read only file system")
	}
	return nil
}

func (d *double) MakeBusy(_ storagetest.T, target string) func() {
	d.loop.Do(func() { d.storage.MakeBusy(target, storage.Holder{PID: 7, Command: "tail"}) })
	return func() { d.loop.Do(func() { d.storage.Free(target) }) }
}

func inBubble(t *testing.T, test func(*testing.T)) { synctest.Test(t, test) }

// The double keeps the rules of the suite, with stages and without.
func TestScripted(t *testing.T) {
	t.Parallel()
	for name, stages := range map[string]bool{"stages": true, "no stages": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storagetest.Run(t, storagetest.Harness{Strict: true, New: func(t storagetest.T) storagetest.Node { return newDouble(t, stages) }, Around: inBubble})
		})
	}
}

// changed is a node whose plugin makes a mistake.
type changed struct {
	*double
	do func(d *double, c storage.Call) error
	// dies: mounts do not outlive the plugin.
	dies bool
	use  func(error) error
}

func (c *changed) Plugin() storagetest.Plugin { return wrong{c.double.Plugin(), c} }

func (c *changed) Restart(t storagetest.T) {
	c.double.Restart(t)
	if c.dies {
		c.loop.Do(func() {
			for _, m := range c.storage.Mounts() {
				c.storage.Lose(m.Path)
			}
		})
	}
}

func (c *changed) Use(target string) error {
	err := c.double.Use(target)
	if c.use != nil {
		return c.use(err)
	}
	return err
}

// wrong is a plugin that makes a mistake.
type wrong struct {
	storagetest.Plugin
	node *changed
}

func (w wrong) Describe(ctx context.Context, t cluster.PluginType) (*cluster.StoragePlugin, error) {
	d, err := w.Plugin.Describe(ctx, t)
	if w.node.do == nil {
		d.Provider = ""
	}
	return d, err
}

func (w wrong) Do(ctx context.Context, c storage.Call, staging, target string) error {
	if w.node.do != nil {
		if err := w.node.do(w.node.double, c); err != nil {
			return err
		}
	}
	return w.Plugin.Do(ctx, c, staging, target)
}

// Each rule fails for a plugin that breaks it.
func TestTests_brokenPlugins(t *testing.T) {
	t.Parallel()
	fine := func(*double, storage.Call) error { return nil }
	published := func(d *double, alloc cluster.AllocID) bool {
		var is bool
		d.loop.Do(func() {
			is = slices.ContainsFunc(d.storage.Mounts(), func(m scripted.Mount) bool { return m.Alloc == alloc })
		})
		return is
	}
	no := errors.New("no")
	broken := map[string]*changed{
		"S1": {},
		"S2": {do: fine, use: func(error) error { return no }},
		"S3": {do: func(d *double, c storage.Call) error {
			if c.Verb == storage.Publish && published(d, "a") {
				return no
			}
			return nil
		}},
		"S3 undo": {do: func(d *double, c storage.Call) error {
			if c.Verb == storage.Unpublish && !published(d, "a") {
				return no
			}
			return nil
		}},
		"S4": {do: func(d *double, c storage.Call) error {
			if c.Verb == storage.Publish {
				return no
			}
			return nil
		}},
		"S5": {do: func(d *double, c storage.Call) error {
			d.loop.Do(func() { d.storage.Adopt(storage.Request{}, storage.Claimed{ExternalID: c.ExternalID}) })
			return nil
		}},
		"S6": {do: func(d *double, c storage.Call) error {
			if c.Verb == storage.Unpublish {
				d.loop.Do(func() {
					for _, path := range d.storage.Busy() {
						d.storage.Free(path)
					}
				})
			}
			return nil
		}},
		"S7": {do: func(d *double, c storage.Call) error {
			if c.Verb == storage.Unpublish && c.Request.Alloc == "a" {
				d.loop.Do(func() {
					for _, m := range d.storage.Mounts() {
						if m.Alloc == "b" {
							d.storage.Lose(m.Path)
						}
					}
				})
			}
			return nil
		}},
		"S7 read only": {do: fine, use: func(error) error { return nil }},
		"S8":           {do: fine, dies: true},
		"S9":           {do: func(d *double, c storage.Call) error { return no }},
	}
	var node *changed
	for _, test := range storagetest.Tests(storagetest.Harness{Strict: true, New: func(t storagetest.T) storagetest.Node {
		node.double = newDouble(t, true)
		return node
	}}) {
		node = broken[test.ID]
		must.NotNil(t, node)
		synctest.Test(t, func(t *testing.T) {
			conformance.Judge(t.Context(), []conformance.Test{test}, nil, func(f conformance.Finding) {
				must.EqOp(t, conformance.Failed, f.Outcome, must.Sprint(test.ID))
			})
		})
	}
}
