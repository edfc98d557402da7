package scenario_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// maker makes random valid scenarios. Many have lines that can be joined.
type maker struct{ *rapid.T }

func (m maker) some(label string) bool { return rapid.Bool().Draw(m.T, label) }

func (m maker) upTo(label string, most int) int { return rapid.IntRange(0, most).Draw(m.T, label) }

func (m maker) span(label string) time.Duration {
	units := []time.Duration{0, 0, time.Nanosecond, time.Millisecond, time.Second, time.Minute, time.Hour}
	return rapid.SampledFrom(units).Draw(m.T, label) * time.Duration(m.upTo(label, 3000))
}

func (m maker) drawn(label string) scenario.Range {
	least := m.span(label)
	return scenario.Range{Min: least, Max: least + m.span(label)}
}

func (m maker) maybeDrawn(label string) *scenario.Range {
	if m.some(label) {
		return nil
	}
	r := m.drawn(label)
	if m.some(label) {
		r = scenario.Range{Min: scenario.Never, Max: scenario.Never}
	}
	return &r
}

func (m maker) maybe(label string) *int {
	if m.some(label) {
		return nil
	}
	n := m.upTo(label, 9)
	return &n
}

// oneOf draws one of the words, or empty.
func oneOf[T ~string](m maker, label string, words ...T) T {
	return rapid.SampledFrom(append(words, "")).Draw(m.T, label)
}

// scenario makes a scenario.
func (m maker) scenario() *scenario.Scenario {
	s := &scenario.Scenario{Name: "case", Seed: uint64(m.upTo("seed", 3))}
	for range m.upTo("prose", 2) {
		s.Prose = append(s.Prose, oneOf(m, "prose", "why", "  and how #", "# why not"))
	}
	s.Cluster = scenario.Cluster{
		Servers: m.upTo("servers", 3), Replicas: m.some("replicas"), Commit: m.drawn("commit"), Late: m.drawn("late"),
		Establish: m.drawn("establish"), Wake: m.drawn("wake"), Schedule: m.drawn("schedule"), Gather: m.span("gather"),
		Collect: m.span("collect"),
	}
	s.Drainer = drainer.NodeDrainerConfig{
		MaxIDsPerEntry: 2 * m.upTo("ids", 3), MaxBytesPerEntry: 4096 * m.upTo("bytes", 3), MaxInFlight: m.upTo("in flight", 3),
		StateQueriesPerSecond: float64(m.upTo("queries", 8)) / 4, MinWriteInterval: m.span("interval"), DeadlineCoalesce: m.span("coalesce"),
		Retry: drainer.Backoff{Base: m.span("retry"), Max: m.span("retry")},
		Policy: rules.Policy{
			HealthGrace: m.span("grace"), StopMargin: m.span("margin"), BelowBudget: rules.BelowBudget(m.upTo("below", 1)),
			PluginsAfterDeadline: rules.PluginOrder(m.upTo("plugins", 1)), Completion: rules.CompletionPolicy(m.upTo("completion", 3)),
		},
	}
	if m.some("coalesce") {
		s.Drainer.DeadlineCoalesce = -1
	}
	if m.some("real") {
		s.Cluster.Clients, s.Cluster.Hold = scenario.RealClients, m.span("hold")
	}
	m.nodes(s)
	m.volumes(s)
	m.jobs(s)
	for range m.upTo("allocs", 8) {
		s.Allocs = append(s.Allocs, m.alloc(s))
	}
	for range m.upTo("clients", 3) {
		s.Clients = append(s.Clients, m.client(s))
	}
	for range m.upTo("events", 8) {
		s.Events = append(s.Events, scenario.Event{
			At: m.span("at"), Before: oneOf(m, "before", scenario.Marks, scenario.Report), Maybe: m.some("maybe"), Op: m.op(s),
		})
	}
	s.Run = scenario.Run{Calm: m.span("calm"), For: m.span("for"), Drained: m.some("drained"), Brief: m.some("brief")}
	if s.Run.Calm > 0 && s.Cluster.Servers == 3 && m.some("cut") {
		s.Run.CutServers = []int{1 + m.upTo("cut server", 2)}
	}
	if s.Run.Calm > 0 && len(s.Nodes) > 0 && m.some("cut") {
		s.Run.CutNodes = slices.Clone(s.Nodes[0].IDs)
	}
	if m.some("expected") {
		s.Story = oneOf(m, "story", "0s  drain n1", "one\n\n  two")
		s.End = oneOf(m, "end", "n1 complete")
	}
	return s
}

// nodes makes nodes. Some numbers are left out.
func (m maker) nodes(s *scenario.Scenario) {
	number := m.upTo("first node", 12)
	for range 1 + m.upTo("nodes", 3) {
		n := scenario.Node{
			CPU: int64(m.upTo("cpu", 2)), MemoryMB: int64(m.upTo("memory", 2)), DiskMB: int64(m.upTo("disk", 2)),
			GPUMilli: int64(m.upTo("gpu", 2)), MaxAllocs: m.upTo("max", 2), Class: oneOf(m, "class", "a", "b"),
			Status:     oneOf(m, "status", cluster.NodeReady, cluster.NodeDown),
			Ineligible: m.some("ineligible"), Unregistered: m.some("absent"),
			Containers: s.Cluster.Clients == scenario.RealClients && m.some("containers"),
		}
		if n.GPUMilli == 0 {
			n.Devices = m.devices()
		}
		for range 1 + m.upTo("alike", 5) {
			number += 1 + m.upTo("gap", 1)
			n.IDs = append(n.IDs, cluster.NodeID(fmt.Sprintf("n%02d", number)))
		}
		s.Nodes = append(s.Nodes, n)
	}
}

// devices makes kinds of devices.
func (m maker) devices() (all []scenario.Devices) {
	for _, kind := range []cluster.DeviceKind{
		{Vendor: scenario.DefaultVendor, Type: "gpu", Name: scenario.DefaultDeviceName}, {Vendor: "acme", Type: "gpu", Name: "x1"},
	} {
		if m.some("kind") {
			continue
		}
		d := scenario.Devices{Kind: kind, Count: 1 + m.upTo("devices", 3)}
		for _, name := range []string{"memory", "cores"} {
			if m.some("attribute") {
				d.Attributes = append(d.Attributes, m.attribute(name))
			}
		}
		all = append(all, d)
	}
	return all
}

func (m maker) attribute(name string) scenario.DeviceAttribute {
	return scenario.DeviceAttribute{Name: name, Value: int64(m.upTo("value", 40)), Unit: oneOf(m, "unit", "GiB")}
}

// volumes makes volumes. Some have indexes.
func (m maker) volumes(s *scenario.Scenario) {
	if s.Cluster.Clients == "" {
		return
	}
	number := 1
	for range m.upTo("volumes", 3) {
		v := scenario.Volume{
			Plugin: oneOf(m, "plugin", cluster.PluginID("disks")), Unregistered: m.some("absent"),
			Access: oneOf(m, "access", cluster.MultiNodeReader, cluster.MultiNodeSingleWriter),
		}
		if v.Plugin == "" {
			v.Plugin = "nfs"
		}
		for range 1 + m.upTo("alike", 4) {
			number += 1 + m.upTo("gap", 1)
			v.Names = append(v.Names, cluster.VolumeID(fmt.Sprintf("data%d", number)))
		}
		if m.some("indexed") {
			v.Indexes = scenario.Indexes{First: m.upTo("index", 3), Count: 1 + m.upTo("indexes", 3)}
		}
		s.Volumes = append(s.Volumes, v)
	}
}

// uses are some of the volumes.
func (m maker) uses(s *scenario.Scenario) (uses []scenario.VolumeUse) {
	for i := range s.Volumes {
		v := &s.Volumes[i]
		if m.some("used") {
			uses = append(uses, scenario.VolumeUse{
				Name: v.Names[0], PerAlloc: v.Indexes.Count > 0, ReadOnly: !v.AccessMode().Writes() || m.some("read only"),
			})
		}
	}
	return uses
}

// service is what a storage plugin serves.
func (m maker) service() scenario.Service {
	s := scenario.Service{Plugin: oneOf(m, "serves", cluster.PluginID("disks"))}
	if s.Plugin != "" {
		s.Type, s.Unstaged = oneOf(m, "plugin type", cluster.PluginController, cluster.PluginMonolith), m.some("unstaged")
	}
	return s
}

// jobs makes jobs. Many differ only in their names.
func (m maker) jobs(s *scenario.Scenario) {
	number := 7
	for range 1 + m.upTo("jobs", 3) {
		like := scenario.Job{
			Type:     oneOf(m, "type", cluster.JobService, cluster.JobSystem, cluster.JobBatch),
			Priority: m.upTo("priority", 2), Stop: m.some("stopped"), Unregistered: m.some("absent"),
		}
		groups := []scenario.Group{m.group("")}
		if s.Cluster.Clients != "" {
			g := &groups[0]
			if g.Volumes = m.uses(s); g.Plugin {
				g.Serves = m.service()
			}
		}
		if m.some("groups") {
			groups = append(groups, m.group("a"), m.group("b"))[m.upTo("first group", 1):]
		}
		for range 1 + m.upTo("alike", 3) {
			number += 1 + m.upTo("gap", 1)
			j := like
			j.Key = cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: cluster.JobID(fmt.Sprintf("web%d", number))}
			if len(groups[0].Volumes)+len(groups[len(groups)-1].Volumes) == 0 && m.some("namespace") {
				j.Key.Namespace = "blue"
			}
			for _, g := range groups {
				if g.Name == "" {
					g.Name = string(j.Key.ID)
				}
				j.Groups = append(j.Groups, g)
			}
			s.Jobs = append(s.Jobs, j)
		}
	}
}

func (m maker) group(name string) scenario.Group {
	g := scenario.Group{
		Name: name, Count: m.upTo("count", 2), MaxParallel: m.maybe("max-parallel"),
		MinHealthy: m.span("healthy"), HealthyDeadline: m.span("deadline"), Kill: m.span("kill"), Shutdown: m.span("shutdown"), GroupShutdown: m.span("group-shutdown"),
		CPU: int64(m.upTo("cpu", 2)), MemoryMB: int64(m.upTo("memory", 2)), GPUMilli: int64(m.upTo("gpu", 2)),
		Plugin: m.some("plugin"), Prestart: m.some("prestart"), Poststart: m.some("poststart"), Sidecar: m.some("sidecar"), Poststop: m.some("poststop"),
		Sticky: m.some("sticky"), Migrate: m.some("migrate"), LostAfter: m.span("lost"), StopAway: m.span("stop-away"),
	}
	if g.GPUMilli == 0 {
		for range m.upTo("requests", 2) {
			r := scenario.DeviceRequest{Name: oneOf(m, "request", "gpu", "acme/gpu/x1"), Count: 1 + m.upTo("devices", 2)}
			if r.Name == "" {
				r.Name = "fpga"
			}
			for range m.upTo("constraints", 2) {
				r.Constraints = append(r.Constraints, scenario.DeviceConstraint{
					DeviceAttribute: m.attribute("memory"), Operand: rapid.SampledFrom([]string{"=", "!=", "<", "<=", ">", ">="}).Draw(m.T, "operand"),
				})
			}
			g.Devices = append(g.Devices, r)
		}
	}
	if m.some("classes") {
		g.Classes = []string{"a", "b"}
	}
	return g
}

func (m maker) aNode(s *scenario.Scenario) cluster.NodeID {
	return rapid.SampledFrom(rapid.SampledFrom(s.Nodes).Draw(m.T, "node").IDs).Draw(m.T, "id")
}

func (m maker) someNodes(s *scenario.Scenario) []cluster.NodeID {
	ids := rapid.SampledFrom(s.Nodes).Draw(m.T, "nodes").IDs
	return ids[m.upTo("first", len(ids)-1):]
}

func (m maker) aGroup(s *scenario.Scenario) cluster.GroupKey {
	j := rapid.SampledFrom(s.Jobs).Draw(m.T, "job")
	return cluster.GroupKey{Job: j.Key, Name: rapid.SampledFrom(j.Groups).Draw(m.T, "group").Name}
}

// alloc makes allocations. They are often equal to the last ones, except for the next job.
func (m maker) alloc(s *scenario.Scenario) scenario.Alloc {
	a := scenario.Alloc{
		Group: m.aGroup(s), On: m.someNodes(s), Health: oneOf(m, "health", "bad"), Canary: m.some("canary"),
		Age: m.span("age"), Client: oneOf(m, "client", cluster.ClientLost), Desired: oneOf(m, "desired", cluster.DesiredStop),
		Marked: m.some("marked"), Replaces: m.maybe("replaces"),
	}
	if m.some("indexed") {
		a.Indexes = scenario.Indexes{First: m.upTo("index", 3), Count: 1 + m.upTo("indexes", 3)}
	}
	last := len(s.Allocs) - 1
	if last < 0 || m.some("unlike") {
		return a
	}
	for i, j := range s.Jobs[1:] {
		if s.Jobs[i].Key == s.Allocs[last].Group.Job {
			a = s.Copy().Allocs[last]
			a.Group = cluster.GroupKey{Job: j.Key, Name: j.Groups[0].Name}
			a.On = a.On[:1]
			if m.some("elsewhere") {
				a.On[0] = m.aNode(s)
			}
		}
	}
	return a
}

func (m maker) client(s *scenario.Scenario) scenario.Client {
	c := scenario.Client{
		Match: m.selector(s), Start: m.maybeDrawn("start"), Copy: m.maybeDrawn("copy"), Verdict: m.maybeDrawn("verdict"),
		Run: m.maybeDrawn("run"), Stop: m.maybeDrawn("stop"), Worsen: m.maybeDrawn("worsen"), Recover: m.maybeDrawn("recover"),
	}
	p := float64(m.upTo("unhealthy", 4)) / 4
	c.Unhealthy = &p
	c.Match.Replacement = m.some("replacement")
	return c
}

func (m maker) selector(s *scenario.Scenario) scenario.Selector {
	var to scenario.Selector
	if m.some("of a job") {
		g := m.aGroup(s)
		to.Job = g.Job
		if m.some("of a group") {
			to.Group = g.Name
		}
		if m.some("of an index") {
			to.Indexes = scenario.Indexes{First: m.upTo("index", 3), Count: 1 + m.upTo("indexes", 2)}
		}
	}
	if m.some("of a node") {
		to.Node = m.aNode(s)
	}
	return to
}

func (m maker) op(s *scenario.Scenario) scenario.Op {
	group := m.aGroup(s)
	name := scenario.AllocName{Group: group, Index: m.upTo("index", 3)}
	if m.some("on") {
		name.Node = m.aNode(s)
	}
	deadline := rapid.SampledFrom([]time.Duration{m.span("deadline"), scenario.Force, scenario.Never}).Draw(m.T, "deadline")
	edit := &scenario.Edit{Job: group.Job, Group: group.Name, Rename: oneOf(m, "rename", "other")}
	if edit.Remove = edit.Rename == "" && m.some("remove"); !edit.Remove {
		edit.Count, edit.MaxParallel = m.maybe("count"), m.maybe("max-parallel")
	}
	change := rapid.SampledFrom([]scenario.Change{scenario.NodeDown, scenario.NodeRegister, scenario.NodeEligible}).Draw(m.T, "change")
	server := m.upTo("server", max(1, s.Cluster.Servers))
	return rapid.SampledFrom([]scenario.Op{
		&scenario.Drain{Nodes: m.someNodes(s), Deadline: deadline, IgnoreSystem: m.some("ignore"), Key: oneOf(m, "key", "k"), Twice: m.some("twice")},
		&scenario.Cancel{Nodes: m.someNodes(s), Eligible: m.some("eligible"), Key: oneOf(m, "key", "k")},
		&scenario.Register{Job: group.Job}, edit,
		&scenario.Edit{Job: group.Job, Count: m.maybe("count")},
		&scenario.Stop{Job: group.Job, Purge: m.some("purge")}, &scenario.StopAlloc{Alloc: name},
		&scenario.Exit{Alloc: name, Failed: m.some("failed")},
		&scenario.Place{Alloc: m.alloc(s), Count: m.maybe("count")},
		&scenario.NodeChange{Nodes: m.someNodes(s), Change: change, Unnoticed: m.some("unnoticed")},
		&scenario.Elect{Server: server, Lost: m.some("lost"), Unaware: m.span("believes")},
		&scenario.Pause{Server: server, For: time.Second + m.span("for")},
		&scenario.Clock{Server: server, Ahead: m.span("ahead") - m.span("behind")},
		&scenario.Restore{}, &scenario.Forget{}, m.fault(s), m.volumeChange(s),
	}).Draw(m.T, "op")
}

func (m maker) volumeChange(s *scenario.Scenario) scenario.Op {
	if len(s.Volumes) == 0 {
		return &scenario.Restore{}
	}
	v := rapid.SampledFrom(s.Volumes).Draw(m.T, "volume")
	o := &scenario.VolumeChange{
		Volume: rapid.SampledFrom(v.IDs()).Draw(m.T, "volume id"),
		Change: rapid.SampledFrom([]scenario.VolumeVerb{scenario.VolumeRegister, scenario.VolumeDeregister, scenario.VolumeDetach}).Draw(m.T, "change"),
	}
	if o.Change == scenario.VolumeDetach {
		o.Node = m.aNode(s)
	}
	o.Force = o.Change != scenario.VolumeRegister && m.some("force")
	return o
}

func (m maker) fault(s *scenario.Scenario) *scenario.Fault {
	kind := rapid.SampledFrom(scenario.Faults()).Draw(m.T, "fault")
	f := &scenario.Fault{Name: kind.Name, Probability: float64(m.upTo("p", 4)) / 4, Count: m.upTo("count", 3), For: m.span("for")}
	if kind.Delays != scenario.NoDelay {
		f.Delay = m.drawn("delay")
		f.Delay.Max++
	}
	if kind.Lasts {
		f.Count, f.For = 0, 0
	}
	if m.some("anything") {
		return f
	}
	group := m.aGroup(s)
	switch kind.On {
	case scenario.OnWrites:
		f.On = oneOf(m, "on", "drainer", "marks", "barrier")
	case scenario.OnAllocs:
		if to := m.selector(s); to != (scenario.Selector{}) {
			f.On = to.String()
		}
	case scenario.OnJob:
		f.On = scenario.Selector{Job: group.Job}.String()
	case scenario.OnGroup:
		f.On = scenario.Selector{Job: group.Job, Group: group.Name}.String()
	case scenario.OnNode:
		f.On = string(m.aNode(s))
	case scenario.NoTarget:
	}
	return f
}
