package storagetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// patience is how long a call may take.
const patience = 30 * time.Second

// check is one test that runs, with one volume.
type check struct {
	conformance.Check
	node Node
	// stages: the plugin stages volumes.
	stages  bool
	claimed storage.Claimed
	usage   storage.Usage
	key     cluster.VolumeKey
}

func newCheck(t T, h Harness, calls *conformance.Trace) *check {
	c := &check{Check: conformance.Check{T: t, Calls: calls}, node: h.New(t), usage: h.Usage, key: cluster.VolumeKey{Namespace: cluster.DefaultNamespace, ID: "tested"}}
	if l, is := c.node.(conformance.Logger); is {
		c.Cleanup(func() { calls.Keep(l.Log()) })
	}
	c.stages = c.describe().Stages
	c.claimed = c.node.Volume(t)
	c.Cleanup(func() { // what a test that has failed leaves
		for _, alloc := range []cluster.AllocID{"a", "b"} {
			_ = c.undo(storage.Unpublish, alloc)
		}
		_ = c.undo(storage.Unstage, "a")
	})
	return c
}

func (c *check) describe() *cluster.StoragePlugin {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	if err := c.node.Plugin().Probe(ctx); err != nil {
		c.Stopf("the plugin is ready", "Probe: %v", err)
	}
	d, err := c.node.Plugin().Describe(ctx, cluster.PluginNode)
	if err != nil {
		c.Stopf("the plugin describes itself", "Describe: %v", err)
	}
	return d
}

func (c *check) staging() string { return storage.StagePath(c.node.Root(), c.key, c.usage) }

func (c *check) target(alloc cluster.AllocID) string {
	return storage.TargetPath(c.node.Root(), alloc, c.key, c.usage)
}

// call is a call for the volume of the test.
func (c *check) call(verb storage.Verb, alloc cluster.AllocID) storage.Call {
	call := storage.Call{
		Verb: verb, Volume: c.key, Plugin: c.claimed.Plugin, ExternalID: c.claimed.ExternalID,
		Request: storage.Request{Alloc: alloc, Volume: c.key, Usage: c.usage}, Staged: c.stages,
	}
	if verb == storage.Stage || verb == storage.Publish {
		call.Claimed = c.claimed
	}
	return call
}

// try makes a call, after what the client does before it.
func (c *check) try(call storage.Call) error {
	if call.Verb == storage.Stage && !c.stages || call.Verb == storage.Unstage && !c.stages {
		return nil
	}
	target := c.target(call.Request.Alloc)
	if err := c.prepare(call.Verb, target); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), patience)
	defer cancel()
	answer := c.Calls.Begin("%s for %s", call.Verb, call.Request.Alloc)
	err := c.node.Plugin().Do(ctx, call, c.staging(), target)
	if err != nil {
		answer(err.Error())
	} else {
		answer("ok")
	}
	return err
}

// prepare makes the folders that a plugin expects, with the modes of a real client.
func (c *check) prepare(verb storage.Verb, target string) error {
	switch {
	case verb == storage.Publish:
		return os.MkdirAll(filepath.Dir(target), 0o700)
	case verb != storage.Stage || c.node.Mounted(c.T, c.staging()):
		return nil
	}
	return os.MkdirAll(c.staging(), 0o700)
}

func (c *check) undo(verb storage.Verb, alloc cluster.AllocID) error {
	return c.try(c.call(verb, alloc))
}

// do makes calls that must succeed.
func (c *check) do(alloc cluster.AllocID, verbs ...storage.Verb) {
	c.Helper()
	for _, verb := range verbs {
		if err := c.try(c.call(verb, alloc)); err != nil {
			c.Stopf(verb.String()+" succeeds", "%v", err)
		}
	}
}

// mounted checks whether the volume is published for an allocation.
func (c *check) mounted(alloc cluster.AllocID, expected bool, when string) {
	c.Helper()
	if c.usage.Attachment != cluster.AttachFileSystem {
		return
	}
	if is := c.node.Mounted(c.T, c.target(alloc)); is != expected {
		c.Failf(fmt.Sprintf("%s something is mounted at the target: %v", when, expected), "mounted: %v", is)
	}
}

// gone checks that nothing is left.
func (c *check) gone() {
	c.Helper()
	c.mounted("a", false, "at the end")
	c.mounted("b", false, "at the end")
	if c.stages && c.node.Mounted(c.T, c.staging()) {
		c.Failf("at the end nothing is mounted at the path of the stage", "something is mounted")
	}
}
