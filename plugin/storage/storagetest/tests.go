package storagetest

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

func describes(c *check) {
	if d := c.describe(); d.Provider == "" {
		c.Failf("a name", "the plugin has no name")
	}
}

func inOrder(c *check) {
	c.do("a", storage.Stage, storage.Publish)
	c.mounted("a", true, "after the publish")
	if err := c.node.Use(c.target("a")); err != nil {
		c.Failf("the volume can be used", "%v", err)
	}
	c.do("a", storage.Unpublish)
	c.mounted("a", false, "after the unpublish")
	c.do("a", storage.Unstage)
	c.gone()
}

func again(c *check) {
	for _, verb := range []storage.Verb{storage.Stage, storage.Publish, storage.Unpublish, storage.Unstage} {
		c.do("a", verb, verb)
		c.mounted("a", verb == storage.Publish, "after "+verb.String()+" twice")
	}
	c.gone()
}

func undoNothing(c *check) {
	c.do("a", storage.Unpublish, storage.Unstage)
	c.do("a", storage.Stage, storage.Unpublish, storage.Unstage)
	c.gone()
}

func publishBeforeStage(c *check) {
	if !c.stages {
		return
	}
	if err := c.try(c.call(storage.Publish, "a")); storage.ClassOf(err) != storage.NotStaged {
		c.Failf("an error that says that the volume is not staged", "the error of the publish is %v", err)
	}
	c.mounted("a", false, "after the refusal")
	c.do("a", storage.Stage, storage.Publish)
	c.mounted("a", true, "after the publish")
	c.do("a", storage.Unpublish, storage.Unstage)
	c.gone()
}

func unknownVolume(c *check) {
	c.claimed.ExternalID = "no-such-volume"
	first := storage.Publish
	if c.stages {
		first = storage.Stage
	}
	if err := c.try(c.call(first, "a")); err == nil {
		c.Failf("an error", "%s of an unknown volume succeeds", first)
	}
	c.do("a", storage.Unpublish, storage.Unstage)
	c.gone()
}

func busyMount(c *check) {
	c.do("a", storage.Stage, storage.Publish)
	free := c.node.MakeBusy(c.T, c.target("a"))
	if err := c.try(c.call(storage.Unpublish, "a")); err == nil {
		c.Failf("an error", "the unpublish of a busy target succeeds")
	}
	c.mounted("a", true, "while it is busy")
	free()
	c.do("a", storage.Unpublish, storage.Unstage)
	c.gone()
}

func twoTargets(c *check) {
	c.usage.Access = cluster.MultiNodeMultiWriter
	c.do("a", storage.Stage, storage.Publish)
	c.do("b", storage.Publish)
	for _, alloc := range []cluster.AllocID{"a", "b"} {
		c.mounted(alloc, true, "after both publishes")
	}
	c.do("a", storage.Unpublish)
	c.mounted("a", false, "after its unpublish")
	c.mounted("b", true, "after the unpublish of the other target")
	if err := c.node.Use(c.target("b")); err != nil {
		c.Failf("the volume can be used", "%v", err)
	}
	c.do("b", storage.Unpublish, storage.Unstage)
	c.gone()
}

func readOnly(c *check) {
	c.usage.ReadOnly = true
	c.do("a", storage.Stage, storage.Publish)
	if err := c.node.Use(c.target("a")); err == nil {
		c.Failf("an error", "a file can be written")
	}
	c.do("a", storage.Unpublish, storage.Unstage)
	c.gone()
}

func restarts(c *check) {
	for _, verb := range []storage.Verb{storage.Stage, storage.Publish, storage.Unpublish, storage.Unstage} {
		c.do("a", verb)
		c.node.Restart(c.T)
		c.mounted("a", verb == storage.Publish, "after "+verb.String()+" and a restart")
	}
	c.gone()
}

func atTheSameTime(c *check) {
	for _, verb := range []storage.Verb{storage.Stage, storage.Publish, storage.Unpublish, storage.Unstage} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.try(c.call(verb, "a"))
		}()
		_ = c.try(c.call(verb, "a"))
		<-done
		c.do("a", verb)
		c.mounted("a", verb == storage.Publish, "after "+verb.String())
	}
	c.gone()
}
