package scenario

import "slices"

// Copy returns a deep copy.
func (s *Scenario) Copy() *Scenario {
	c := *s
	c.Prose = slices.Clone(s.Prose)
	c.Nodes = slices.Clone(s.Nodes)
	for i := range c.Nodes {
		c.Nodes[i].IDs = slices.Clone(c.Nodes[i].IDs)
		c.Nodes[i].Devices = cloned(c.Nodes[i].Devices, Devices.clone)
	}
	c.Volumes = slices.Clone(s.Volumes)
	for i := range c.Volumes {
		c.Volumes[i].Names = slices.Clone(c.Volumes[i].Names)
	}
	c.Jobs = slices.Clone(s.Jobs)
	for i := range c.Jobs {
		c.Jobs[i].Groups = slices.Clone(c.Jobs[i].Groups)
		for g := range c.Jobs[i].Groups {
			c.Jobs[i].Groups[g] = c.Jobs[i].Groups[g].clone()
		}
	}
	c.Allocs = slices.Clone(s.Allocs)
	for i := range c.Allocs {
		c.Allocs[i] = c.Allocs[i].clone()
	}
	c.Clients = slices.Clone(s.Clients)
	for i := range c.Clients {
		c.Clients[i] = c.Clients[i].clone()
	}
	c.Events = slices.Clone(s.Events)
	for i := range c.Events {
		c.Events[i].Op = c.Events[i].Op.clone()
	}
	c.Run.CutServers, c.Run.CutNodes = slices.Clone(s.Run.CutServers), slices.Clone(s.Run.CutNodes)
	return &c
}

func (g Group) clone() Group {
	g.MaxParallel = copied(g.MaxParallel)
	g.Classes = slices.Clone(g.Classes)
	g.Devices = cloned(g.Devices, DeviceRequest.clone)
	g.Volumes = slices.Clone(g.Volumes)
	return g
}

func (a Alloc) clone() Alloc {
	a.On = slices.Clone(a.On)
	a.Replaces = copied(a.Replaces)
	return a
}

func (c Client) clone() Client {
	for _, r := range [...]**Range{&c.Start, &c.Copy, &c.Verdict, &c.Run, &c.Stop, &c.Worsen, &c.Recover} {
		*r = copied(*r)
	}
	c.Unhealthy = copied(c.Unhealthy)
	return c
}

// copied returns a pointer to a copy, or nil for nil.
func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

func (o *Drain) clone() Op {
	c := *o
	c.Nodes = slices.Clone(o.Nodes)
	return &c
}

func (o *Cancel) clone() Op {
	c := *o
	c.Nodes = slices.Clone(o.Nodes)
	return &c
}

func (o *Edit) clone() Op {
	c := *o
	c.Count, c.MaxParallel = copied(o.Count), copied(o.MaxParallel)
	return &c
}

func (o *Place) clone() Op {
	return &Place{Alloc: o.Alloc.clone(), Count: copied(o.Count)}
}

func (o *NodeChange) clone() Op {
	c := *o
	c.Nodes = slices.Clone(o.Nodes)
	return &c
}

func (o *Register) clone() Op  { return copied(o) }
func (o *Stop) clone() Op      { return copied(o) }
func (o *StopAlloc) clone() Op { return copied(o) }
func (o *Exit) clone() Op      { return copied(o) }
func (o *Elect) clone() Op     { return copied(o) }
func (o *Pause) clone() Op     { return copied(o) }
func (o *Clock) clone() Op     { return copied(o) }
func (o *Restore) clone() Op   { return copied(o) }
func (o *Forget) clone() Op    { return copied(o) }
func (o *Fault) clone() Op     { return copied(o) }
