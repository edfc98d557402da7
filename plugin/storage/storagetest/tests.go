package storagetest

import (
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

func describes(c *check) {
	if d := c.describe(); d.Provider == "" {
		c.Failf("a name", "the plugin has no name")
	}
}

func inOrder(c *check) {
	c.do("a", volume.Stage, volume.Publish)
	c.mounted("a", true, "after the publish")
	if err := c.node.Use(c.target("a")); err != nil {
		c.Failf("the volume can be used", "%v", err)
	}
	c.do("a", volume.Unpublish)
	c.mounted("a", false, "after the unpublish")
	c.do("a", volume.Unstage)
	c.gone()
}

func again(c *check) {
	for _, verb := range []volume.Verb{volume.Stage, volume.Publish, volume.Unpublish, volume.Unstage} {
		c.do("a", verb, verb)
		c.mounted("a", verb == volume.Publish, "after "+verb.String()+" twice")
	}
	c.gone()
}

func undoNothing(c *check) {
	c.do("a", volume.Unpublish, volume.Unstage)
	c.do("a", volume.Stage, volume.Unpublish, volume.Unstage)
	c.gone()
}

func publishBeforeStage(c *check) {
	if !c.stages {
		return
	}
	if err := c.try(c.call(volume.Publish, "a")); volume.ClassOf(err) != volume.NotStaged {
		c.Failf("an error that says that the volume is not staged", "the error of the publish is %v", err)
	}
	c.mounted("a", false, "after the refusal")
	c.do("a", volume.Stage, volume.Publish)
	c.mounted("a", true, "after the publish")
	c.do("a", volume.Unpublish, volume.Unstage)
	c.gone()
}

func unknownVolume(c *check) {
	c.claimed.ExternalID = "no-such-volume"
	first := volume.Publish
	if c.stages {
		first = volume.Stage
	}
	if err := c.try(c.call(first, "a")); err == nil {
		c.Failf("an error", "%s of an unknown volume succeeds", first)
	}
	c.do("a", volume.Unpublish, volume.Unstage)
	c.gone()
}

func busyMount(c *check) {
	c.do("a", volume.Stage, volume.Publish)
	free := c.node.MakeBusy(c.T, c.target("a"))
	if err := c.try(c.call(volume.Unpublish, "a")); err == nil {
		c.Failf("an error", "the unpublish of a busy target succeeds")
	}
	c.mounted("a", true, "while it is busy")
	free()
	c.do("a", volume.Unpublish, volume.Unstage)
	c.gone()
}

func twoTargets(c *check) {
	c.usage.Access = cluster.MultiNodeMultiWriter
	c.do("a", volume.Stage, volume.Publish)
	c.do("b", volume.Publish)
	for _, alloc := range []cluster.AllocID{"a", "b"} {
		c.mounted(alloc, true, "after both publishes")
	}
	c.do("a", volume.Unpublish)
	c.mounted("a", false, "after its unpublish")
	c.mounted("b", true, "after the unpublish of the other target")
	if err := c.node.Use(c.target("b")); err != nil {
		c.Failf("the volume can be used", "%v", err)
	}
	c.do("b", volume.Unpublish, volume.Unstage)
	c.gone()
}

func readOnly(c *check) {
	c.usage.ReadOnly = true
	c.do("a", volume.Stage, volume.Publish)
	if err := c.node.Use(c.target("a")); err == nil {
		c.Failf("an error", "a file can be written")
	}
	c.do("a", volume.Unpublish, volume.Unstage)
	c.gone()
}

func restarts(c *check) {
	for _, verb := range []volume.Verb{volume.Stage, volume.Publish, volume.Unpublish, volume.Unstage} {
		c.do("a", verb)
		c.node.Restart(c.T)
		c.mounted("a", verb == volume.Publish, "after "+verb.String()+" and a restart")
	}
	c.gone()
}

func atTheSameTime(c *check) {
	for _, verb := range []volume.Verb{volume.Stage, volume.Publish, volume.Unpublish, volume.Unstage} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.try(c.call(verb, "a"))
		}()
		_ = c.try(c.call(verb, "a"))
		<-done
		c.do("a", verb)
		c.mounted("a", verb == volume.Publish, "after "+verb.String())
	}
	c.gone()
}
