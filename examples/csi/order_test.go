package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"
)

// Each rule, with its error message.
func TestOrder(t *testing.T) {
	t.Parallel()
	const staging, rw = "/staging", "/target"
	attached := onNode{attached: true}
	staged := onNode{attached: true, staged: []string{staging, "/other"}}
	published := onNode{attached: true, staged: []string{staging, "/other"}, published: []target{{rw, staging}}}
	for _, c := range []struct {
		name     string
		now      standing
		call     call
		expected string
	}{
		{"stage first", nil, call{Name: nodeStage, Node: "a", Staging: staging}, "not published to the node a by a controller"},
		{"stage elsewhere", standing{"b": attached}, call{Name: nodeStage, Node: "a", Staging: staging}, "not published to the node a"},
		{"stage", standing{"a": attached}, call{Name: nodeStage, Node: "a", Staging: staging}, ""},
		{"stage again", standing{"a": published}, call{Name: nodeStage, Node: "a", Staging: staging}, ""},
		{"publish unattached", standing{"a": {staged: []string{staging}}}, call{Name: nodePublish, Node: "a", Staging: staging, Target: rw}, "not published to the node a"},
		{"publish unstaged", standing{"a": attached}, call{Name: nodePublish, Node: "a", Staging: staging, Target: rw}, "not staged at /staging"},
		{"publish from another path", standing{"a": staged}, call{Name: nodePublish, Node: "a", Staging: "/wrong", Target: rw}, "not staged at /wrong"},
		{"publish", standing{"a": staged}, call{Name: nodePublish, Node: "a", Staging: staging, Target: rw}, ""},
		{"publish again", standing{"a": published}, call{Name: nodePublish, Node: "a", Staging: staging, Target: rw}, ""},
		{"unpublish nothing", nil, call{Name: nodeUnpublish, Node: "a", Target: rw}, ""},
		{"unstage published", standing{"a": published}, call{Name: nodeUnstage, Node: "a", Staging: staging}, "still published at /target"},
		{"unstage another path", standing{"a": published}, call{Name: nodeUnstage, Node: "a", Staging: "/other"}, ""},
		{"unstage beside another node", standing{"a": staged, "b": published}, call{Name: nodeUnstage, Node: "a", Staging: staging}, ""},
		{"unstage nothing", nil, call{Name: nodeUnstage, Node: "a", Staging: staging}, ""},
		{"detach staged", standing{"a": staged}, call{Name: controllerUnpublish, Node: "a"}, "still staged on the node a at /staging"},
		{"detach published", standing{"a": published}, call{Name: controllerUnpublish, Node: "a"}, "still published on the node a at /target"},
		{"detach beside another node", standing{"a": attached, "b": published}, call{Name: controllerUnpublish, Node: "a"}, ""},
		{"detach all", standing{"a": attached, "b": staged}, call{Name: controllerUnpublish}, "still staged on the node b"},
		{"detach nothing", nil, call{Name: controllerUnpublish, Node: "a"}, ""},
		{"delete attached", standing{"a": attached}, call{Name: deleteVolume}, "still published to the node a by a controller"},
		{"delete staged", standing{"b": {staged: []string{staging}}}, call{Name: deleteVolume}, "still staged on the node b"},
		{"delete", standing{}, call{Name: deleteVolume}, ""},
		{"create", standing{"a": published}, call{Name: createVolume}, ""},
		{"attach a second node", standing{"a": published}, call{Name: controllerPublish, Node: "b"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			why := c.now.outOfOrder(c.call)
			must.Eq(t, c.expected == "", why == "", must.Sprint(why))
			must.StrContains(t, why, c.expected)
		})
	}
}

// twin checks calls by the history of accepted calls, and has no state.
type twin []call

// last reports whether the history contains a matching call named begin, and no later one named
// end.
func (w twin) last(begin, end string, fits func(call) bool) bool {
	for _, c := range slices.Backward(w) {
		if fits(c) && (c.Name == begin || c.Name == end) {
			return c.Name == begin
		}
	}
	return false
}

func (w twin) attached(node string) bool {
	return w.last(controllerPublish, controllerUnpublish, func(c call) bool { return c.Node == node || c.Node == "" })
}

func (w twin) staged(node, path string) bool {
	return w.last(nodeStage, nodeUnstage, func(c call) bool { return c.Node == node && c.Staging == path })
}

// published reports whether a path of a node is a target, from one of the staging paths.
func (w twin) published(node, path string, from ...string) bool {
	for _, c := range slices.Backward(w) {
		if c.Node == node && c.Target == path {
			return c.Name == nodePublish && slices.Contains(from, c.Staging)
		}
	}
	return false
}

func (w twin) refuses(c call) bool {
	paths := []string{"/s1", "/s2"}
	mounted := func(node string) bool {
		return w.staged(node, "/s1") || w.staged(node, "/s2") || w.published(node, "/t1", paths...) || w.published(node, "/t2", paths...)
	}
	switch c.Name {
	case nodeStage:
		return !w.attached(c.Node)
	case nodePublish:
		return !w.attached(c.Node) || !w.staged(c.Node, c.Staging)
	case nodeUnstage:
		return w.published(c.Node, "/t1", c.Staging) || w.published(c.Node, "/t2", c.Staging)
	case controllerUnpublish:
		return c.Node != "" && mounted(c.Node) || c.Node == "" && (mounted("a") || mounted("b"))
	case deleteVolume:
		return mounted("a") || mounted("b") || w.attached("a") || w.attached("b")
	}
	return false
}

// apply changes the state like the plugin.
func (s standing) apply(c call) {
	n := s[c.Node]
	switch c.Name {
	case controllerPublish:
		n.attached = true
	case controllerUnpublish:
		for id := range s {
			if c.Node == "" {
				other := s[id]
				other.attached = false
				s[id] = other
			}
		}
		n.attached = false
	case nodeStage:
		if !slices.Contains(n.staged, c.Staging) {
			n.staged = append(n.staged, c.Staging)
		}
	case nodeUnstage:
		n.staged = slices.DeleteFunc(n.staged, func(path string) bool { return path == c.Staging })
	case nodePublish:
		n.published = append(slices.DeleteFunc(n.published, func(t target) bool { return t.path == c.Target }), target{c.Target, c.Staging})
	case nodeUnpublish:
		n.published = slices.DeleteFunc(n.published, func(t target) bool { return t.path == c.Target })
	}
	if c.Node != "" {
		s[c.Node] = n
	}
}

// The rules based on the state and the rules based on the history refuse the same calls.
func TestOrder_agreesWithTwin(t *testing.T) {
	t.Parallel()
	refused := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		now, history := standing{}, twin{}
		for range rapid.IntRange(1, 100).Draw(t, "calls") {
			c := call{Name: rapid.SampledFrom([]string{
				createVolume, deleteVolume, controllerPublish, controllerUnpublish, nodeStage, nodeUnstage, nodePublish, nodeUnpublish,
				controllerPublish, nodeStage, nodePublish, nodePublish, nodePublish, // more often, so that more is published
			}).Draw(t, "name")}
			if c.Name != createVolume && c.Name != deleteVolume {
				c.Node = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node")
			}
			if c.Name == controllerUnpublish && rapid.IntRange(0, 3).Draw(t, "all") == 0 {
				c.Node = ""
			}
			if strings.HasSuffix(c.Name, "StageVolume") || c.Name == nodeUnstage || c.Name == nodePublish {
				c.Staging = rapid.SampledFrom([]string{"/s1", "/s2"}).Draw(t, "staging")
			}
			if c.Name == nodePublish || c.Name == nodeUnpublish {
				c.Target = rapid.SampledFrom([]string{"/t1", "/t2"}).Draw(t, "target")
			}
			why := now.outOfOrder(c)
			must.Eq(t, history.refuses(c), why != "", must.Sprintf("%+v after %+v: %s", c, history, why))
			if why != "" {
				refused[c.Name]++
				continue
			}
			now.apply(c)
			history = append(history, c)
		}
	})
	for _, name := range []string{deleteVolume, controllerUnpublish, nodeStage, nodeUnstage, nodePublish} {
		must.Positive(t, refused[name], must.Sprintf("no %s was refused: nothing is tested", name))
	}
}
