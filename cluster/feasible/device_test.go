package feasible_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
)

func a100() cluster.DeviceKind {
	return cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: "A100"}
}
func mi50() cluster.DeviceKind { return cluster.DeviceKind{Vendor: "amd", Type: "gpu", Name: "MI50"} }

// devices returns a group of healthy devices with the ids.
func devices(k cluster.DeviceKind, ids ...string) *cluster.DeviceGroup {
	g := &cluster.DeviceGroup{Kind: k}
	for _, id := range ids {
		g.Devices = append(g.Devices, cluster.Device{ID: id, Healthy: true})
	}
	return g
}

func with(groups ...*cluster.DeviceGroup) *cluster.Node {
	n := &cluster.Node{ID: "n", Devices: groups}
	n.Canonicalize()
	return n
}

// requesting is a group whose tasks t0, t1 and so on have one request each.
func requesting(requests ...cluster.DeviceRequest) *cluster.TaskGroup {
	g := &cluster.TaskGroup{Name: "g", Tasks: []*cluster.Task{nil}}
	for i, r := range requests {
		g.Tasks = append(g.Tasks, &cluster.Task{Name: fmt.Sprint("t", i), Devices: []cluster.DeviceRequest{r}})
	}
	return g
}

func demandsOf(g *cluster.TaskGroup) feasible.Devices {
	return feasible.Of(&cluster.Job{}).Group(g).Devices()
}

func is(left, operand, right string) cluster.Constraint {
	return cluster.Constraint{LTarget: left, Operand: operand, RTarget: right}
}

func using(k cluster.DeviceKind, ids ...string) cluster.DevicesInUse {
	used := cluster.DevicesInUse{}
	used.Add(&cluster.AssignedDevices{All: []cluster.AssignedDevice{{Kind: k, IDs: ids}}})
	return used
}

// text is an assignment as "t0 A100 a,b; t1 MI50 c".
func text(a feasible.Assignment, ok bool) string {
	if !ok {
		return "none"
	}
	var parts []string
	for _, d := range a.Devices.All {
		parts = append(parts, d.Task+" "+d.Kind.Name+" "+strings.Join(d.IDs, ","))
	}
	return strings.Join(parts, "; ")
}

func TestDeviceConstraints(t *testing.T) {
	t.Parallel()
	g := devices(a100(), "a", "b")
	g.Attributes = map[string]cluster.DeviceAttribute{
		"memory": {Kind: cluster.AttributeInt, Int: 11441, Unit: "MiB"}, "large": {Kind: cluster.AttributeInt, Int: 9007199254740993},
		"power": {Kind: cluster.AttributeFloat, Float: 0.3, Unit: "kW"}, "tenth": {Kind: cluster.AttributeFloat, Float: 0.1},
		"ecc": {Kind: cluster.AttributeBool, Bool: true}, "driver": {Text: "470.82.1"}, "modes": {Text: "c, g,m"}, "cores": {Text: "10"}, "empty": {},
		"strange": {Kind: cluster.AttributeInt, Int: 6, Unit: "potato"},
	}
	for _, test := range []struct {
		left, operand, right string
		want                 bool
	}{
		{"${device.attr.memory}", ">", "2 GiB", true},
		{"${device.attr.memory}", "<", "2 GiB", false},
		{"2 GiB", "<", "${device.attr.memory}", true},
		{"${device.attr.memory}", "=", "11441MiB", true},
		{"${device.attr.memory}", "", "11996758016 B", true},
		{"${device.attr.memory}", "!=", "11441 MiB", false},
		{"${device.attr.memory}", "!=", "11441 MB", true},
		{"${device.attr.memory}", ">", "2", false},
		{"${device.attr.memory}", "!=", "2 W", true},
		{"${device.attr.memory}", ">", "much", false},
		{"${device.attr.memory}", "=", "much", false},
		{"${device.attr.memory}", "regexp", "^11441 MiB$", true},
		{"${device.attr.large}", ">", "9007199254740992", true},
		{"${device.attr.large}", "=", "9007199254740992", false},
		{"${device.attr.power}", "=", "300 W", true},
		{"${device.attr.power}", "<=", "250W", false},
		{"${device.attr.tenth}", "=", "0.1", true},
		{"${device.attr.tenth}", ">=", "1e-1", true},
		{"${device.attr.ecc}", "=", "true", true},
		{"${device.attr.ecc}", "=", "1", true},
		{"${device.attr.ecc}", "!=", "false", true},
		{"${device.attr.ecc}", "=", "maybe", false},
		{"${device.attr.ecc}", "<", "true", false},
		{"${device.attr.driver}", "version", ">= 470, < 500", true},
		{"${device.attr.driver}", "semver", "> 470.82.1", false},
		{"${device.attr.modes}", "set_contains", "m,c", true},
		{"${device.attr.modes}", "set_contains", "m,x", false},
		{"${device.attr.modes}", "set_contains_any", "x,m", true},
		{"${device.attr.cores}", ">", "9", true},
		{"${device.attr.cores}", "=", "10", true},
		{"${device.attr.cores}", "=", "10.0", false}, // texts are equal if their bytes are
		{"${device.attr.driver}", "<", "5", true},    // not a number: by bytes
		{"${device.attr.empty}", "is_set", "", true},
		{"${device.attr.none}", "is_set", "", false},
		{"${device.attr.none}", "is_not_set", "", true},
		{"${device.attr.none}", "=", "", false},
		{"${device.attr.none}", "!=", "x", true},
		{"${device.attr.none}", "!=", "${device.attr.neither}", false},
		{"${device.attr.strange}", "=", "6 potato", true},
		{"${device.attr.memory}", ">", "${device.attr.large}", false},
		{"${device.attr.memory}", "=", "${device.attr.ecc}", false},
		{"2 GiB", ">", "1 GB", true},
		{"2048 MiB", "=", "2 GiB", true},
		{"b", ">", "a", true},
		{"${device.vendor}", "=", "nvidia", true},
		{"${device.type}", "=", "gpu", true},
		{"${device.model}", "regexp", "^A1", true},
		{"${device.model}", "regexp", "(", false},
		{"${device.colour}", "is_set", "", false},
		{"${device.ids}", "=", "b", true},
		{"${device.ids}", "=", "c", false},
		{"${device.ids}", "set_contains", "b, c", true},
		{"${device.ids}", "set_contains_any", "c,d", false},
		{"${device.ids}", "regexp", "^[b-z]", true},
		{"${device.ids}", "distinct_hosts", "true", false},
		{"${device.ids}", "is_set", "", true},
	} {
		c := is(test.left, test.operand, test.right)
		one := demandsOf(requesting(cluster.DeviceRequest{Name: "gpu", Count: 1, Constraints: []cluster.Constraint{c}}))
		missing := one.Missing(with(g))
		must.Eq(t, test.want, missing == "", must.Sprint(c, missing))
		_, ok := one.Assign(with(g), nil)
		must.Eq(t, test.want, ok, must.Sprint(c))
	}
}

func TestAssign(t *testing.T) {
	t.Parallel()
	gpu := func(count int, constraints ...cluster.Constraint) cluster.DeviceRequest {
		return cluster.DeviceRequest{Name: "gpu", Count: count, Constraints: constraints}
	}
	prefer := func(r cluster.DeviceRequest, weight int, c cluster.Constraint) cluster.DeviceRequest {
		r.Affinities = append(r.Affinities, cluster.Affinity{Constraint: c, Weight: weight})
		return r
	}
	sick := devices(a100(), "a", "b", "c")
	sick.Devices[0].Healthy = false
	nvidia := cluster.DeviceRequest{Name: "nvidia/gpu", Count: 1}
	for name, test := range map[string]struct {
		node  *cluster.Node
		used  cluster.DevicesInUse
		group *cluster.TaskGroup
		want  string
		score int
	}{
		"lowest ids":                  {node: with(devices(a100(), "c", "b", "a")), group: requesting(gpu(2)), want: "t0 A100 a,b"},
		"healthy ones":                {node: with(sick), group: requesting(gpu(2)), want: "t0 A100 b,c"},
		"free ones":                   {node: with(sick), used: using(a100(), "b"), group: requesting(gpu(1)), want: "t0 A100 c"},
		"the same id of another kind": {node: with(devices(a100(), "a"), devices(mi50(), "a")), used: using(mi50(), "a"), group: requesting(gpu(1)), want: "t0 A100 a"},
		"more than there are":         {node: with(sick), group: requesting(gpu(3)), want: "none"},
		"no mix of kinds":             {node: with(devices(a100(), "a"), devices(mi50(), "b")), group: requesting(gpu(2)), want: "none"},
		"another type":                {node: with(devices(a100(), "a")), group: requesting(cluster.DeviceRequest{Name: "fpga", Count: 1}), want: "none"},
		"no devices":                  {node: with(), group: requesting(gpu(1)), want: "none"},
		"by vendor first":             {node: with(devices(a100(), "a"), devices(mi50(), "b")), group: requesting(gpu(1), nvidia), want: "t0 MI50 b; t1 A100 a"},
		"the largest first":           {node: with(devices(a100(), "a"), devices(mi50(), "b", "c")), group: requesting(gpu(1), gpu(2)), want: "t0 A100 a; t1 MI50 b,c"},
		"each its own":                {node: with(devices(a100(), "a", "b", "c")), group: requesting(gpu(1), gpu(2)), want: "t0 A100 c; t1 A100 a,b"},
		"named ids": {
			node: with(devices(a100(), "a", "b")), group: requesting(gpu(1), gpu(1, is("${device.ids}", "set_contains", "a"))), want: "t0 A100 b; t1 A100 a",
		},
		"a preferred kind": {
			node:  with(devices(a100(), "a", "b"), devices(mi50(), "c")),
			group: requesting(prefer(gpu(1), 50, is("${device.vendor}", "=", "nvidia"))), want: "t0 A100 a", score: 50,
		},
		"an avoided kind": {
			node:  with(devices(a100(), "a"), devices(mi50(), "c")),
			group: requesting(prefer(gpu(1), -50, is("${device.vendor}", "=", "amd"))), want: "t0 A100 a",
		},
		"a preferred id": {
			node:  with(devices(a100(), "a", "b", "c")),
			group: requesting(prefer(prefer(gpu(2), 10, is("${device.ids}", "=", "c")), 1, is("${device.type}", "=", "gpu"))), want: "t0 A100 c,a", score: 12,
		},
		"preferences yield": {
			node:  with(devices(a100(), "a"), devices(mi50(), "b", "c")),
			group: requesting(prefer(gpu(1), 50, is("${device.vendor}", "=", "amd")), gpu(2)), want: "t0 A100 a; t1 MI50 b,c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := demandsOf(test.group)
			for range 3 {
				a, ok := d.Assign(test.node, test.used)
				must.Eq(t, test.want, text(a, ok))
				must.Eq(t, test.score, a.Score)
				if ok {
					must.Eq(t, "", feasible.RefusalOfDevices(test.group, test.node, a.Devices, test.used))
				}
			}
		})
	}
	must.False(t, demandsOf(&cluster.TaskGroup{Tasks: []*cluster.Task{{Name: "t"}}}).Any())
}

func TestMissing_NamesTheRequests(t *testing.T) {
	t.Parallel()
	sick := devices(a100(), "a")
	sick.Devices[0].Healthy = false
	g := requesting(cluster.DeviceRequest{Name: "gpu", Count: 1}, cluster.DeviceRequest{Name: "gpu", Count: 2}, cluster.DeviceRequest{Name: "gpu", Count: 2}, cluster.DeviceRequest{Name: "intel/fpga", Count: 1})
	must.Eq(t, "missing devices: 2 gpu, 1 intel/fpga", feasible.Of(&cluster.Job{}).Group(g).Refusal(with(sick)))
	must.Eq(t, "", feasible.Of(&cluster.Job{}).Group(g).Unsatisfied(with(sick)))
	must.Eq(t, "", demandsOf(requesting(cluster.DeviceRequest{Name: "gpu", Count: 1})).Missing(with(sick)), must.Sprint("it may become healthy"))

	n := with(devices(a100(), "a", "b"), devices(mi50(), "c"))
	for want, r := range map[string]cluster.DeviceRequest{
		"missing devices: 3 gpu of one model": {Name: "gpu", Count: 3},
		"missing devices: 4 gpu":              {Name: "gpu", Count: 4},
		"missing devices: 2 amd/gpu":          {Name: "amd/gpu", Count: 2},
		"missing devices: 2 gpu of one model": {Name: "gpu", Count: 2, Constraints: []cluster.Constraint{is("${device.ids}", "set_contains", "b,c")}},
	} {
		must.Eq(t, want, demandsOf(requesting(r)).Missing(n))
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	n := with(devices(a100(), "a", "b", "c", "d"))
	n.Devices[0].Devices[3].Healthy = false
	for _, test := range []struct {
		counts []int
		used   []string
		want   feasible.Shortage
	}{
		{counts: []int{3}},
		{counts: []int{4}, want: feasible.Shortage{Unhealthy: 1}},
		{counts: []int{3}, used: []string{"a"}, want: feasible.Shortage{Unhealthy: 1}},
		{counts: []int{4}, used: []string{"a", "b"}, want: feasible.Shortage{Used: 2, Unhealthy: 1}},
		{counts: []int{1}, used: []string{"a", "b", "c", "d"}, want: feasible.Shortage{Used: 1}},
		{counts: []int{2, 2}, want: feasible.Shortage{Used: 1}},
	} {
		var requests []cluster.DeviceRequest
		for _, count := range test.counts {
			requests = append(requests, cluster.DeviceRequest{Name: "gpu", Count: count})
		}
		must.Eq(t, test.want, demandsOf(requesting(requests...)).Short(n, using(a100(), test.used...)), must.Sprint(test))
	}
}

func TestRefusalOfDevices(t *testing.T) {
	t.Parallel()
	n := with(devices(a100(), "a", "b", "c", "d"), devices(mi50(), "a"))
	n.Devices[1].Devices[3].Healthy = false
	g := requesting(cluster.DeviceRequest{Name: "nvidia/gpu", Count: 2}, cluster.DeviceRequest{Name: "gpu", Count: 1})
	one := func(task string, k cluster.DeviceKind, ids ...string) cluster.AssignedDevice {
		return cluster.AssignedDevice{Task: task, Kind: k, IDs: ids}
	}
	right := one("t0", a100(), "a", "b")
	for want, all := range map[string][]cluster.AssignedDevice{
		"":                          {right, one("t1", mi50(), "a")},
		"task t0 has no nvidia/gpu": {},
		"task t1 has no gpu":        {right},
		"task t0 requests nvidia/gpu, and not amd/gpu/MI50":           {one("t0", mi50(), "a", "b"), one("t1", a100(), "c")},
		"task t0 requests 2 nvidia/gpu, and has 1":                    {one("t0", a100(), "a"), one("t1", a100(), "b")},
		"task t0 requests 2 nvidia/gpu, and has 3":                    {one("t0", a100(), "a", "b", "c"), one("t1", mi50(), "a")},
		"the devices of task t1 are in the place of those of task t0": {one("t1", mi50(), "a"), right},
		"device nvidia/gpu/A100 a is assigned twice":                  {right, one("t1", a100(), "a")},
		"device nvidia/gpu/A100 b is assigned twice":                  {one("t0", a100(), "b", "b"), one("t1", mi50(), "a")},
		"device nvidia/gpu/A100 c is in use":                          {right, one("t1", a100(), "c")},
		"device nvidia/gpu/A100 d is unhealthy":                       {one("t0", a100(), "a", "d"), one("t1", mi50(), "a")},
		"device nvidia/gpu/A100 e is gone":                            {one("t0", a100(), "a", "e"), one("t1", mi50(), "a")},
		"the node has no nvidia/gpu/T4":                               {one("t0", cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: "T4"}, "a", "b"), one("t1", mi50(), "a")},
		"it has devices that no task requests":                        {right, one("t1", mi50(), "a"), one("t1", a100(), "c")},
	} {
		must.Eq(t, want, feasible.RefusalOfDevices(g, n, &cluster.AssignedDevices{All: all}, using(a100(), "c")))
	}
	must.Eq(t, "task t0 has no nvidia/gpu", feasible.RefusalOfDevices(g, n, nil, nil))
	none := requesting()
	must.Eq(t, "", feasible.RefusalOfDevices(none, n, nil, nil))
	must.Eq(t, "it has an empty list of devices", feasible.RefusalOfDevices(none, n, &cluster.AssignedDevices{}, nil))
}

// A client reserves devices by their ids alone, and a newer version of their plugin may name a kind
// otherwise. What a task has of the old kind is in use in the new one: the client refuses it, and the
// allocation would wait on its node.
func TestDevices_aKindIsRenamed(t *testing.T) {
	t.Parallel()
	n, old := with(devices(a100(), "a", "b"), devices(mi50(), "a")), cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: "A100-SXM"}
	used := using(old, "a")
	one := requesting(cluster.DeviceRequest{Name: "nvidia/gpu", Count: 1})
	a, ok := demandsOf(one).Assign(n, used)
	must.True(t, ok)
	must.Eq(t, []string{"b"}, a.Devices.All[0].IDs)
	must.Eq(t, "device nvidia/gpu/A100 a is in use", feasible.RefusalOfDevices(one, n, &cluster.AssignedDevices{All: []cluster.AssignedDevice{{Task: "t0", Kind: a100(), IDs: []string{"a"}}}}, used))
	must.Eq(t, feasible.Shortage{Used: 1}, demandsOf(requesting(cluster.DeviceRequest{Name: "nvidia/gpu", Count: 2})).Short(n, used))
	must.Eq(t, using(old, "a"), used, must.Sprint("the devices in use stay as they are"))

	n.Devices = append(n.Devices, devices(old, "a")) // the node has both kinds: they are different devices
	_, ok = demandsOf(requesting(cluster.DeviceRequest{Name: "nvidia/gpu/A100", Count: 2})).Assign(n, used)
	must.True(t, ok)
}

// renamed is a kind that no node has any more.
func renamed() cluster.DeviceKind {
	return cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: "old"}
}

// exists is a slow twin of Assign: it tries every way to give devices to requests.
func exists(g *cluster.TaskGroup, n *cluster.Node, used cluster.DevicesInUse) bool {
	var requests []*cluster.DeviceRequest
	for _, r := range g.Requests() {
		requests = append(requests, r)
	}
	allowed := func(r *cluster.DeviceRequest, k cluster.DeviceKind, id string) bool {
		for _, c := range r.Constraints { // each is ${device.ids} set_contains
			if !slices.Contains(strings.Split(c.RTarget, ","), id) {
				return false
			}
		}
		return r.Matches(k)
	}
	taken := map[string]bool{}
	var try func(i, count int, kind *cluster.DeviceGroup, from int) bool
	try = func(i, count int, kind *cluster.DeviceGroup, from int) bool {
		if i == len(requests) {
			return true
		}
		if count == requests[i].Count {
			return try(i+1, 0, nil, 0)
		}
		if kind == nil {
			return slices.ContainsFunc(n.Devices, func(g *cluster.DeviceGroup) bool { return try(i, 0, g, 0) })
		}
		for at := from; at < len(kind.Devices); at++ {
			d := kind.Devices[at]
			key := kind.Kind.String() + d.ID
			if !d.Healthy || used[kind.Kind][d.ID] || used[renamed()][d.ID] || taken[key] || !allowed(requests[i], kind.Kind, d.ID) {
				continue
			}
			taken[key] = true
			found := try(i, count+1, kind, at+1)
			delete(taken, key)
			if found {
				return true
			}
		}
		return false
	}
	return try(0, 0, nil, 0)
}

// An assignment is never wrong. It is found if there is one in the cases that Assign promises.
func TestAssign_AgreesWithItsTwin(t *testing.T) {
	t.Parallel()
	missed := 0
	rapid.Check(t, func(t *rapid.T) {
		var ids []string
		for i := range rapid.IntRange(0, 5).Draw(t, "devices") {
			ids = append(ids, strconv.Itoa(i))
		}
		n := with(devices(a100(), ids...), devices(mi50(), ids[:rapid.IntRange(0, len(ids)).Draw(t, "others")]...))
		used := cluster.DevicesInUse{}
		for _, g := range n.Devices {
			for i := range g.Devices {
				g.Devices[i].Healthy = rapid.IntRange(0, 4).Draw(t, "health") > 0
				if rapid.IntRange(0, 4).Draw(t, "use") == 0 {
					used.Add(&cluster.AssignedDevices{All: []cluster.AssignedDevice{{Kind: g.Kind, IDs: []string{g.Devices[i].ID}}}})
				}
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "renamed") == 0 {
			used.Add(&cluster.AssignedDevices{All: []cluster.AssignedDevice{{Kind: renamed(), IDs: []string{"0", "3"}}}})
		}
		var requests []cluster.DeviceRequest
		nested, oneKind := true, true
		for range rapid.IntRange(1, 3).Draw(t, "requests") {
			r := cluster.DeviceRequest{Name: rapid.SampledFrom([]string{"gpu", "nvidia/gpu", "nvidia/gpu", "amd/gpu"}).Draw(t, "name"), Count: rapid.IntRange(1, 3).Draw(t, "count")}
			oneKind = oneKind && r.Name == "nvidia/gpu"
			switch listed := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"0", "1", "2", "3", "4"}), rapid.ID[string]).Draw(t, "ids"); rapid.IntRange(0, 2).Draw(t, "constraint") {
			case 0:
				first := []string{"0", "1", "2", "3", "4"}[:rapid.IntRange(1, 5).Draw(t, "first")]
				r.Constraints = []cluster.Constraint{is("${device.ids}", "set_contains", strings.Join(first, ","))}
			case 1:
				nested = false
				r.Constraints = []cluster.Constraint{is("${device.ids}", "set_contains", strings.Join(listed, ","))}
			}
			if rapid.Bool().Draw(t, "prefers") {
				r.Affinities = []cluster.Affinity{
					{Constraint: is("${device.vendor}", "=", "nvidia"), Weight: rapid.SampledFrom([]int{-9, 9}).Draw(t, "weight")},
					{Constraint: is("${device.ids}", "=", rapid.SampledFrom([]string{"0", "3"}).Draw(t, "preferred")), Weight: rapid.SampledFrom([]int{-5, 5}).Draw(t, "id weight")},
				}
			}
			requests = append(requests, r)
		}
		g := requesting(requests...)
		a, ok := demandsOf(g).Assign(n, used)
		possible := exists(g, n, used)
		if ok {
			must.True(t, possible)
			must.Eq(t, "", feasible.RefusalOfDevices(g, n, a.Devices, used))
			at := 0
			for _, r := range g.Requests() {
				for _, c := range r.Constraints {
					for _, id := range a.Devices.All[at].IDs {
						must.SliceContains(t, strings.Split(c.RTarget, ","), id)
					}
				}
				at++
			}
			must.Eq(t, feasible.Shortage{}, demandsOf(g).Short(n, used))
			return
		}
		must.NotEq(t, feasible.Shortage{}, demandsOf(g).Short(n, used))
		if len(requests) == 1 || oneKind && nested {
			must.False(t, possible)
		} else if possible {
			missed++
		}
	})
	t.Logf("Assign missed %d assignments that it does not promise", missed)
}

// No device fits two requests: an assignment is found if there is one. The requests name their devices in
// any order, and are those of one task or of several. Bug: the test promised it for lists that begin alike
// only, and a wrong count of the devices that are left for the second request was not found.
func TestAssign_DisjointRequests(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.Permutation([]string{"0", "1", "2", "3", "4", "5"}).Draw(t, "ids")
		n := with(devices(a100(), slices.Sorted(slices.Values(ids))...))
		used := using(a100(), ids[:rapid.IntRange(0, 2).Draw(t, "used")]...)
		g := requesting()
		for len(ids) > 0 {
			own := ids[:rapid.IntRange(1, len(ids)).Draw(t, "own")]
			ids = ids[len(own):]
			r := cluster.DeviceRequest{
				Name: "gpu", Count: rapid.IntRange(1, len(own)).Draw(t, "count"),
				Constraints: []cluster.Constraint{is("${device.ids}", "set_contains", strings.Join(own, ","))},
			}
			if len(g.Tasks) == 1 || rapid.Bool().Draw(t, "another task") {
				g.Tasks = append(g.Tasks, &cluster.Task{Name: fmt.Sprint("t", len(g.Tasks))})
			}
			last := g.Tasks[len(g.Tasks)-1]
			last.Devices = append(last.Devices, r)
		}
		a, ok := demandsOf(g).Assign(n, used)
		must.EqOp(t, exists(g, n, used), ok)
		if ok {
			must.Eq(t, "", feasible.RefusalOfDevices(g, n, a.Devices, used))
		}
	})
}

// A node with ten thousand devices is judged quickly enough for the scheduler's step.
// greedy is the group with the most constraints on the node with the most devices. Each constraint was judged
// on each device for each request that was still open, again for each allocation: one job stopped the
// scheduler for minutes.
func greedy() (n *cluster.Node, d feasible.Devices) {
	var ids []string
	for i := range 10_000 {
		ids = append(ids, fmt.Sprintf("GPU-%036d", i))
	}
	request := cluster.DeviceRequest{Name: "gpu", Count: 1, Constraints: slices.Repeat([]cluster.Constraint{
		{LTarget: "${device.ids}", Operand: "<", RTarget: "x"},
	}, cluster.MaxDeviceConstraints/cluster.MaxDeviceRequests)}
	return with(devices(a100(), ids...)), demandsOf(requesting(slices.Repeat([]cluster.DeviceRequest{request}, cluster.MaxDeviceRequests)...))
}

func TestAssign_AGreedyGroup(t *testing.T) {
	t.Parallel()
	n, d := greedy()
	used := cluster.DevicesInUse{}
	for range 10 {
		a, ok := d.Assign(n, used)
		must.True(t, ok)
		must.Len(t, cluster.MaxDeviceRequests, a.Devices.All)
		for _, one := range a.Devices.All {
			must.Len(t, 1, one.IDs)
			must.False(t, used[one.Kind][one.IDs[0]])
			used.Add(&cluster.AssignedDevices{All: []cluster.AssignedDevice{one}})
		}
	}
	must.MapLen(t, 10*cluster.MaxDeviceRequests, used[a100()])
}

func BenchmarkAssign_AGreedyGroup(b *testing.B) {
	n, d := greedy()
	for b.Loop() {
		if _, ok := d.Assign(n, nil); !ok {
			b.Fatal("no devices")
		}
	}
}

func BenchmarkAssign_TenThousandDevices(b *testing.B) {
	var ids []string
	for i := range 10_000 {
		ids = append(ids, fmt.Sprintf("GPU-%036d", i))
	}
	n, d := with(devices(a100(), ids...)), demandsOf(requesting(cluster.DeviceRequest{Name: "gpu", Count: 8}))
	used := using(a100(), ids[:9_000]...)
	for b.Loop() {
		if _, ok := d.Assign(n, used); !ok {
			b.Fatal("no devices")
		}
	}
}
