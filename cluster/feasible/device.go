package feasible

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// MissingDevices begins the reason of a node that does not have the devices that tasks of the group request,
// in use or not. The requests that it cannot fulfil follow.
const MissingDevices = "missing devices"

// OfOneModel follows a request in this reason if devices of several models would fulfil it together. A request gets
// devices of one model: their plugin prepares them in one call, and sets one variable for all.
const OfOneModel = " of one model"

// Devices are what the tasks of a group request of the devices of a node.
type Devices struct{ requests []*request }

// request is one request, read once for many nodes.
type request struct {
	cluster.DeviceRequest
	task string
	// ofKind are about all devices of a kind, ofOne about each device by itself.
	ofKind, ofOne []*constraint
	// prefers are the affinities.
	prefers []affinity
	// fits are the results for the groups of nodes that were judged. A plan reads one node several
	// times, and 64 requests with constraints on 10,000 devices cost seconds each time.
	fits map[*cluster.DeviceGroup]*fit
}

type affinity struct {
	*constraint
	weight int
}

// devicesOf reads the requests of a group.
func devicesOf(g *cluster.TaskGroup) Devices {
	d := Devices{}
	for task, r := range g.Requests() {
		one := &request{DeviceRequest: *r, task: task, fits: make(map[*cluster.DeviceGroup]*fit)}
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

// Any reports whether the group requests devices.
func (d Devices) Any() bool { return len(d.requests) > 0 }

// Missing returns why the node lacks devices for the group even if all of them were healthy and free, or the
// empty string.
func (d Devices) Missing(n *cluster.Node) string {
	var missing []string
	for _, r := range d.requests {
		most, sum := 0, 0
		for _, g := range n.Devices {
			fitting := len(r.fit(g).order)
			most, sum = max(most, fitting), sum+fitting
		}
		text := fmt.Sprintf("%d %s", r.Count, r.Name)
		if sum >= r.Count {
			text += OfOneModel
		}
		if most < r.Count && !slices.Contains(missing, text) {
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
	a, ok := d.assign(d.offers(n, used), true)
	if !ok && len(d.requests) > 1 {
		a, ok = d.assign(d.offers(n, used), false)
	}
	return a, ok
}

// assign changes the offers.
func (d Devices) assign(offers [][]offer, preferences bool) (a Assignment, ok bool) {
	open := make([]int, len(d.requests)) // requests without devices
	for i := range open {
		open[i] = i
	}
	chosen := make([]cluster.AssignedDevice, len(d.requests))
	for len(open) > 0 {
		best, fitting := -1, 0
		for at, i := range open {
			count := 0
			for _, o := range offers[i] {
				count += o.left
			}
			if count == 0 {
				return Assignment{}, false
			}
			if best < 0 || cmp.Or(cmp.Compare(count, fitting), cmp.Compare(d.requests[open[best]].Count, d.requests[i].Count)) < 0 {
				best, fitting = at, count
			}
		}
		i := open[best]
		r := d.requests[i]
		o := r.best(offers[i], preferences)
		a.Score += o.score(r.Count)
		first := o.first(r.Count)
		chosen[i] = cluster.AssignedDevice{Task: r.task, Kind: o.group.Kind, IDs: make([]string, len(first))}
		for at, k := range first {
			chosen[i].IDs[at] = o.group.Devices[k].ID
			o.taken[k] = true
		}
		open = slices.Delete(open, best, best+1)
		for _, i := range open {
			offers[i] = d.requests[i].without(offers[i], o.group, first)
		}
	}
	a.Devices = &cluster.AssignedDevices{All: chosen}
	return a, true
}

// offer are the free devices of one kind that fit a request, as many as it requests or more.
type offer struct {
	*fit
	group *cluster.DeviceGroup
	// taken is true at the places of the devices that cannot be assigned any more. All offers of the
	// group share it.
	taken []bool
	// left counts those that fit and are not taken.
	left int
}

// first returns the places of the devices that the request prefers.
func (o *offer) first(count int) []int {
	first := make([]int, 0, count)
	for _, k := range o.order {
		if len(first) == count {
			break
		}
		if !o.taken[k] {
			first = append(first, k)
		}
	}
	return first
}

// score is that of the first devices.
func (o *offer) score(count int) int {
	sum := o.ofKind * count
	if o.ofOne != nil {
		for _, k := range o.first(count) {
			sum += o.ofOne[k]
		}
	}
	return sum
}

// offers returns the kinds with enough devices for each request, in their order.
func (d Devices) offers(n *cluster.Node, used cluster.DevicesInUse) [][]offer {
	all := make([][]offer, len(d.requests))
	for _, g := range n.Devices {
		var taken []bool
		for i, r := range d.requests {
			f := r.fit(g)
			if len(f.order) < r.Count {
				continue
			}
			if taken == nil {
				taken = unavailable(g, inUse(n, g.Kind, used))
			}
			o := offer{fit: f, group: g, taken: taken}
			for _, k := range f.order {
				if !taken[k] {
					o.left++
				}
			}
			if o.left >= r.Count {
				all[i] = append(all[i], o)
			}
		}
	}
	return all
}

// inUse are the ids of a kind that allocations on the node have. If the node no longer has the kind of a
// device that is in use, its plugin may have renamed the kind: the id is in use in every kind then. The
// client's ledger judges in the same way, so an allocation does not wait there for a device that it was
// assigned here.
func inUse(n *cluster.Node, kind cluster.DeviceKind, used cluster.DevicesInUse) map[string]bool {
	ids, shared := used[kind], true
	for other, old := range used { //lint:order a union of sets
		if n.DeviceGroup(other) != nil {
			continue
		}
		if shared {
			ids, shared = maps.Clone(ids), false
			if ids == nil {
				ids = make(map[string]bool, len(old))
			}
		}
		maps.Copy(ids, old)
	}
	return ids
}

// unavailable is true at the places of the devices of the group that cannot be assigned.
func unavailable(g *cluster.DeviceGroup, used map[string]bool) []bool {
	all := make([]bool, len(g.Devices))
	for i, d := range g.Devices {
		all[i] = !d.Healthy || used[d.ID]
	}
	return all
}

// without counts devices of one group that were assigned to another request, and removes the offer if too few
// are left.
func (r *request) without(offers []offer, g *cluster.DeviceGroup, taken []int) []offer {
	for i := range offers {
		o := &offers[i]
		if o.group != g {
			continue
		}
		for _, k := range taken {
			if o.fits[k] {
				o.left--
			}
		}
		if o.left < r.Count {
			return slices.Delete(offers, i, i+1)
		}
		break
	}
	return offers
}

// best returns the offer that the request takes.
func (r *request) best(offers []offer, preferences bool) offer {
	return slices.MinFunc(offers, func(a, b offer) int {
		if preferences {
			if order := cmp.Compare(b.score(r.Count), a.score(r.Count)); order != 0 {
				return order
			}
		}
		return cmp.Compare(a.left, b.left)
	})
}

// fit contains the devices of a group that fit a request, healthy and free or not.
type fit struct {
	// fits is true at the places of the devices that fit. order are their places: those that the request
	// prefers first, and equal ones in the order of their ids.
	fits  []bool
	order []int
	// ofKind is the sum of the weights of the affinities that hold for each device of the kind. ofOne are the
	// sums of the others by place, or nil.
	ofKind int
	ofOne  []int
}

// fit returns what of the group fits. Groups of nodes do not change.
func (r *request) fit(g *cluster.DeviceGroup) *fit {
	f := r.fits[g]
	if f == nil {
		f = r.judge(g)
		r.fits[g] = f
	}
	return f
}

func (r *request) judge(g *cluster.DeviceGroup) *fit {
	if !r.Matches(g.Kind) || slices.ContainsFunc(r.ofKind, func(c *constraint) bool { return !c.holdsOn(g, nil) }) {
		return &fit{}
	}
	f := &fit{fits: make([]bool, len(g.Devices)), order: make([]int, 0, len(g.Devices))}
	for i := range g.Devices {
		if !slices.ContainsFunc(r.ofOne, func(c *constraint) bool { return !c.holdsOn(g, &g.Devices[i]) }) {
			f.fits[i], f.order = true, append(f.order, i)
		}
	}
	for _, a := range r.prefers {
		switch {
		case !a.OfOneDevice():
			if a.holdsOn(g, nil) {
				f.ofKind += a.weight
			}
			continue
		case f.ofOne == nil:
			f.ofOne = make([]int, len(g.Devices))
		}
		for _, i := range f.order {
			if a.holdsOn(g, &g.Devices[i]) {
				f.ofOne[i] += a.weight
			}
		}
	}
	if f.ofOne != nil {
		slices.SortStableFunc(f.order, func(a, b int) int { return cmp.Compare(f.ofOne[b], f.ofOne[a]) })
	}
	return f
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
			unused, sound, taken := 0, 0, inUse(n, g.Kind, used)
			for _, i := range r.fit(g).order {
				if d := &g.Devices[i]; !taken[d.ID] {
					unused++
					if d.Healthy {
						sound++
					}
				}
			}
			free, healthy = max(free, unused), max(healthy, sound)
		}
		s.Used += max(0, r.Count-free)
		s.Unhealthy += min(r.Count, free) - min(r.Count, healthy)
	}
	if s == (Shortage{}) {
		s.Used = 1
	}
	return s
}

// RefusalOfDevices returns why the devices of a placement of the group on the node cannot be assigned, or the
// empty string. Unlike [Devices.Assign], the FSM calls it: it reads no constraint.
func RefusalOfDevices(g *cluster.TaskGroup, n *cluster.Node, assigned *cluster.AssignedDevices, used cluster.DevicesInUse) string {
	var all []cluster.AssignedDevice
	if assigned != nil {
		all = assigned.All
	}
	assignedBefore := cluster.DevicesInUse{}
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
			return fmt.Sprintf("task %s requests %s, and not %s", task, r.Name, one.Kind)
		case len(one.IDs) != r.Count:
			return fmt.Sprintf("task %s requests %d %s, and has %d", task, r.Count, r.Name, len(one.IDs))
		}
		if why := refusalOfDevice(n, one, used, assignedBefore); why != "" {
			return why
		}
	}
	if at < len(all) {
		return "it has devices that no task requests"
	}
	if at == 0 && assigned != nil {
		return "it has an empty list of devices"
	}
	return ""
}

// refusalOfDevice judges the ids of one request, and adds them to those that the allocation has.
func refusalOfDevice(n *cluster.Node, one cluster.AssignedDevice, used, assigned cluster.DevicesInUse) string {
	group := n.DeviceGroup(one.Kind)
	if group == nil {
		return fmt.Sprintf("the node has no %s", one.Kind)
	}
	if assigned[one.Kind] == nil {
		assigned[one.Kind] = make(map[string]bool, len(one.IDs))
	}
	taken := inUse(n, one.Kind, used)
	for _, id := range one.IDs {
		name := fmt.Sprintf("device %s %s", one.Kind, id)
		switch d := group.Device(id); {
		case d == nil:
			return name + " is gone"
		case !d.Healthy:
			return name + " is unhealthy"
		case taken[id]:
			return name + " is in use"
		case assigned[one.Kind][id]:
			return name + " is assigned twice"
		}
		assigned[one.Kind][id] = true
	}
	return ""
}
