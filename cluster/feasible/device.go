package feasible

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// MissingDevices begins the reason of a node that does not have the devices that tasks of the group ask for,
// in use or not. The requests that it cannot fulfil follow.
const MissingDevices = "missing devices"

// Devices are what the tasks of a group ask of the devices of a node.
type Devices struct{ requests []*request }

// request is one request, read once for many nodes.
type request struct {
	cluster.DeviceRequest
	task string
	// ofKind speak of all devices of a kind, ofOne of each device by itself.
	ofKind, ofOne []*constraint
	// prefers are the affinities.
	prefers []affinity
}

type affinity struct {
	*constraint
	weight int
}

// devicesOf reads the requests of a group.
func devicesOf(g *cluster.TaskGroup) Devices {
	d := Devices{}
	for task, r := range g.Requests() {
		one := &request{DeviceRequest: *r, task: task}
		for _, c := range read(r.Constraints) {
			if c.OfOneDevice() {
				one.ofOne = append(one.ofOne, c)
			} else {
				one.ofKind = append(one.ofKind, c)
			}
		}
		for _, a := range r.Affinities {
			one.prefers = append(one.prefers, affinity{read([]cluster.Constraint{a.Constraint})[0], a.Weight})
		}
		d.requests = append(d.requests, one)
	}
	return d
}

// Any reports whether the group asks for devices.
func (d Devices) Any() bool { return len(d.requests) > 0 }

// Missing returns why the node lacks devices for the group even if all of them were healthy and free, or the
// empty string.
func (d Devices) Missing(n *cluster.Node) string {
	var missing []string
	for _, r := range d.requests {
		enough := slices.ContainsFunc(n.Devices, func(g *cluster.DeviceGroup) bool {
			return r.accepts(g) && len(r.choose(g, func(*cluster.Device) bool { return true })) >= r.Count
		})
		if text := fmt.Sprintf("%d %s", r.Count, r.Name); !enough && !slices.Contains(missing, text) {
			missing = append(missing, text)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return cluster.CutText(MissingDevices + ": " + strings.Join(missing, ", "))
}

// Assignment are devices of one node for a group.
type Assignment struct {
	Devices *cluster.AssignedDevices
	// Score is the sum of the weights of the affinities that hold, for each device.
	Score int
}

// Assign chooses healthy devices of the node that are not in use, or returns false. It is deterministic:
// of equal devices it takes those with the lowest ids.
//
// An assignment that Assign returns fulfils all requests. Assign does not try all ways to share devices
// between the requests of a group. It serves the request with the fewest fitting devices first, among equals
// the one with the largest count, and gives it the kind that it prefers, then the kind of which the fewest
// are left. If that fails it tries once more without affinities. So it finds an assignment if there is one in
// these cases: the group has one request; no device fits two requests; all devices that fit are of one kind,
// and of two requests either no device fits both, or one fits all devices of the other. In other cases
// it may find none, and the group waits.
func (d Devices) Assign(n *cluster.Node, used cluster.DevicesInUse) (Assignment, bool) {
	a, ok := d.assign(n, used, true)
	if !ok && len(d.requests) > 1 {
		a, ok = d.assign(n, used, false)
	}
	return a, ok
}

func (d Devices) assign(n *cluster.Node, used cluster.DevicesInUse, preferences bool) (a Assignment, ok bool) {
	taken := cluster.DevicesInUse{}
	open := make([]int, len(d.requests)) // requests without devices
	for i := range open {
		open[i] = i
	}
	chosen := make([]cluster.AssignedDevice, len(d.requests))
	for len(open) > 0 {
		best, offers := 0, []offer(nil)
		fitting := 0
		for at, i := range open {
			r := d.requests[i]
			own := r.offers(n, used, taken)
			if len(own) == 0 {
				return Assignment{}, false
			}
			count := 0
			for _, o := range own {
				count += len(o.ids)
			}
			if offers == nil || cmp.Or(cmp.Compare(count, fitting), cmp.Compare(d.requests[open[best]].Count, r.Count)) < 0 {
				best, offers, fitting = at, own, count
			}
		}
		i := open[best]
		r := d.requests[i]
		o := r.best(offers, preferences)
		a.Score += o.score
		chosen[i] = cluster.AssignedDevice{Task: r.task, Kind: o.group.Kind, IDs: o.ids[:r.Count:r.Count]}
		if len(open) > 1 {
			taken.Add(&cluster.AssignedDevices{All: chosen[i : i+1]})
		}
		open = slices.Delete(open, best, best+1)
	}
	a.Devices = &cluster.AssignedDevices{All: chosen}
	return a, true
}

// offer are the free devices of one kind that fit a request, those that it prefers first.
type offer struct {
	group *cluster.DeviceGroup
	ids   []string
	// score is that of the first devices.
	score int
}

// offers returns the kinds with enough devices for the request, in their order.
func (r *request) offers(n *cluster.Node, used, taken cluster.DevicesInUse) (all []offer) {
	for _, g := range n.Devices {
		if !r.accepts(g) {
			continue
		}
		inUse, planned := used[g.Kind], taken[g.Kind]
		fits := r.choose(g, func(d *cluster.Device) bool { return d.Healthy && !inUse[d.ID] && !planned[d.ID] })
		if len(fits) >= r.Count {
			all = append(all, r.order(g, fits))
		}
	}
	return all
}

// best returns the offer that the request takes.
func (r *request) best(offers []offer, preferences bool) offer {
	return slices.MinFunc(offers, func(a, b offer) int {
		if preferences && a.score != b.score {
			return cmp.Compare(b.score, a.score)
		}
		return cmp.Compare(len(a.ids), len(b.ids))
	})
}

// order sorts the devices by how much the request prefers them, and sums up the scores of the first.
func (r *request) order(g *cluster.DeviceGroup, fits []*cluster.Device) offer {
	o := offer{group: g, ids: make([]string, len(fits))}
	ofKind, single := 0, false
	for _, a := range r.prefers {
		if a.OfOneDevice() {
			single = true
		} else if a.holdsOn(g, nil) {
			ofKind += a.weight
		}
	}
	o.score = ofKind * r.Count
	if single {
		scores := make(map[*cluster.Device]int, len(fits))
		for _, d := range fits {
			for _, a := range r.prefers {
				if a.OfOneDevice() && a.holdsOn(g, d) {
					scores[d] += a.weight
				}
			}
		}
		slices.SortStableFunc(fits, func(a, b *cluster.Device) int { return cmp.Compare(scores[b], scores[a]) })
		for _, d := range fits[:r.Count] {
			o.score += scores[d]
		}
	}
	for i, d := range fits {
		o.ids[i] = d.ID
	}
	return o
}

// accepts reports whether all devices of the group are of a kind that the request may get.
func (r *request) accepts(g *cluster.DeviceGroup) bool {
	return r.Matches(g.Kind) && !slices.ContainsFunc(r.ofKind, func(c *constraint) bool { return !c.holdsOn(g, nil) })
}

// choose returns the devices of an accepted group that fit, in the order of their ids.
func (r *request) choose(g *cluster.DeviceGroup, is func(*cluster.Device) bool) []*cluster.Device {
	fits := make([]*cluster.Device, 0, len(g.Devices))
	for i := range g.Devices {
		d := &g.Devices[i]
		if is(d) && !slices.ContainsFunc(r.ofOne, func(c *constraint) bool { return !c.holdsOn(g, d) }) {
			fits = append(fits, d)
		}
	}
	return fits
}

// Shortage counts the devices that a node lacks for a group that needs more than are healthy and free.
type Shortage struct {
	// Used is how many more would be needed if all devices were healthy, Unhealthy how many more beside those.
	Used, Unhealthy int
}

// Short returns how many devices of the node are missing for the group. It counts each request by itself;
// if they only compete with each other, one is missing.
func (d Devices) Short(n *cluster.Node, used cluster.DevicesInUse) (s Shortage) {
	if _, fits := d.Assign(n, used); fits {
		return Shortage{}
	}
	for _, r := range d.requests {
		free, healthy := 0, 0
		for _, g := range n.Devices {
			if r.accepts(g) {
				inUse := used[g.Kind]
				free = max(free, len(r.choose(g, func(d *cluster.Device) bool { return !inUse[d.ID] })))
				healthy = max(healthy, len(r.choose(g, func(d *cluster.Device) bool { return d.Healthy && !inUse[d.ID] })))
			}
		}
		s.Used += max(0, r.Count-free)
		s.Unhealthy += min(r.Count, free) - min(r.Count, healthy)
	}
	if s == (Shortage{}) {
		s.Used = 1
	}
	return s
}

// RefusalOfDevices returns why the devices of a placement of the group on the node cannot be given, or the
// empty string. Unlike [Devices.Assign], the FSM calls it: it reads no constraint.
func RefusalOfDevices(g *cluster.TaskGroup, n *cluster.Node, assigned *cluster.AssignedDevices, used cluster.DevicesInUse) string {
	var all []cluster.AssignedDevice
	if assigned != nil {
		all = assigned.All
	}
	given := cluster.DevicesInUse{}
	at := 0
	for task, r := range g.Requests() {
		if at == len(all) {
			return fmt.Sprintf("task %s has no %s", task, r.Name)
		}
		one := all[at]
		at++
		switch {
		case one.Task != task:
			return fmt.Sprintf("the devices of task %s are in the place of those of task %s", one.Task, task)
		case !r.Matches(one.Kind):
			return fmt.Sprintf("task %s asks for %s, and not for %s", task, r.Name, one.Kind)
		case len(one.IDs) != r.Count:
			return fmt.Sprintf("task %s asks for %d %s, and has %d", task, r.Count, r.Name, len(one.IDs))
		}
		if why := refusalOfDevice(n, one, used, given); why != "" {
			return why
		}
	}
	if at < len(all) {
		return "it has devices that no task asks for"
	}
	if at == 0 && assigned != nil {
		return "it has an empty list of devices"
	}
	return ""
}

// refusalOfDevice judges the ids of one request, and adds them to those that the allocation has.
func refusalOfDevice(n *cluster.Node, one cluster.AssignedDevice, used, given cluster.DevicesInUse) string {
	group := n.DeviceGroup(one.Kind)
	if group == nil {
		return fmt.Sprintf("the node has no %s", one.Kind)
	}
	if given[one.Kind] == nil {
		given[one.Kind] = make(map[string]bool, len(one.IDs))
	}
	for _, id := range one.IDs {
		name := fmt.Sprintf("device %s %s", one.Kind, id)
		switch d := group.Device(id); {
		case d == nil:
			return name + " is gone"
		case !d.Healthy:
			return name + " is unhealthy"
		case used[one.Kind][id]:
			return name + " is in use"
		case given[one.Kind][id]:
			return name + " is given twice"
		}
		given[one.Kind][id] = true
	}
	return ""
}
