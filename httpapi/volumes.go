package httpapi

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonbody"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/listing"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/redact"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Bounds on requests about volumes.
const (
	// maxVolume bounds the body of a registration, and maxClaims that of a release of claims, in bytes.
	maxVolume = 256 << 10
	maxClaims = 1 << 20
)

// volumeKey is the volume that the path names, in the namespace of the query string.
func volumeKey(q *request) cluster.VolumeKey {
	return cluster.VolumeKey{Namespace: q.params.namespace, ID: cluster.VolumeID(q.PathValue("id"))}
}

// listVolumes answers GET /v1/volumes, by namespace, then id. Other types than csi have no volumes.
func listVolumes(q *request) error {
	values := q.URL.Query()
	if kind := values.Get("type"); kind != "" && kind != string(cluster.VolumeCSI) {
		return q.answer([]*wire.VolumeListStub{})
	}
	return q.read(func(s State) found {
		known := plugins(s)
		f := found{index: max(s.TableIndex(TableVolumes), s.TableIndex(TableNodes))}
		f.body = func() (any, error) {
			stub := func(v *cluster.Volume) *wire.VolumeListStub { return volumeStub(s, v, known) }
			return page(q, listing.List[*cluster.Volume]{
				Rows: listing.Where(s.Volumes(), selectsVolume(q, s)),
				Token: func(v *cluster.Volume) string {
					return jobToken(cluster.JobKey{Namespace: v.Namespace, ID: cluster.JobID(v.ID)})
				},
				Compare: func(v *cluster.Volume, token string) int {
					k := parseJobToken(token)
					return v.Key().Compare(cluster.VolumeKey{Namespace: k.Namespace, ID: cluster.VolumeID(k.ID)})
				},
				Full: func(v *cluster.Volume) any { return stub(v) },
			}, stub)
		}
		return f
	})
}

// selectsVolume returns the condition of a volume in the list: its namespace, the prefix of its id, its
// plugin and a node with a claim on it.
func selectsVolume(q *request, s State) func(*cluster.Volume) bool {
	values := q.URL.Query()
	plugin, node := values.Get("plugin_id"), cluster.NodeID(values.Get("node_id"))
	onNode := map[cluster.VolumeKey]bool{}
	if node != "" {
		for c := range s.ClaimsOnNode(node) {
			onNode[c.Volume] = true
		}
	}
	return func(v *cluster.Volume) bool {
		return q.params.within(v.Namespace) && strings.HasPrefix(string(v.ID), q.params.prefix) &&
			(plugin == "" || plugin == string(v.Plugin)) && (node == "" || onNode[v.Key()])
	}
}

func volumeStub(s State, v *cluster.Volume, known map[cluster.PluginID]*volumes.Plugin) *wire.VolumeListStub {
	readers, writers := 0, 0
	var used cluster.VolumeCapability
	for c := range s.ClaimsOfVolume(v.Key()) {
		used = c.Capability
		if c.Writes() {
			writers++
		} else {
			readers++
		}
	}
	return wire.NewVolumeListStub(v, known[v.Plugin], used, readers, writers)
}

// readVolume answers GET /v1/volume/csi/{id}. No answer has the values of the volume's secrets. Claims of
// other volumes do not wake a reader that waits.
func readVolume(q *request) error {
	return q.read(func(s State) found {
		v := s.Volume(volumeKey(q))
		if v == nil {
			return found{index: s.TableIndex(TableVolumes), missing: volumeNotFound}
		}
		plugin, claims := plugins(s)[v.Plugin], slices.Collect(s.ClaimsOfVolume(v.Key()))
		f := found{index: max(v.ModifyIndex, v.ClaimsIndex, s.TableIndex(TableNodes))}
		for _, c := range claims {
			if a := s.Alloc(c.Alloc); a != nil {
				f.index = max(f.index, a.ModifyIndex)
			}
		}
		f.body = func() (any, error) {
			w := wire.NewVolume(v, plugin)
			w.Secrets = redact.Values(v.Secrets)
			if !q.author.Write {
				w.MountOptions, w.Context, w.Parameters = nil, redact.Values(v.Context), redact.Values(v.Parameters)
			}
			for _, c := range claims {
				alloc := s.Alloc(c.Alloc)
				var stub *wire.AllocationListStub
				if alloc != nil {
					stub = wire.NewAllocationListStub(alloc)
				}
				w.Claim(c, claimWaits(s, c, alloc, plugin), stub)
			}
			w.ControllerCalls = controllerCalls(q, func(c volumes.FailedCall) bool { return c.Volume == v.Key() })
			return w, nil
		}
		return f
	})
}

// claimWaits describes what a claim waits for, or is empty: a controller, the report of the client, or
// how long the servers wait for a node that they cannot reach.
func claimWaits(s State, c *cluster.VolumeClaim, alloc *cluster.Allocation, plugin *volumes.Plugin) string {
	if !c.State.OnNode() && c.Controller {
		return "a controller must detach the volume from the node" + lacksController(plugin)
	}
	if !c.State.OnNode() {
		return ""
	}
	switch why := volumes.ExpiryOf(c, alloc, s.Node(c.Node)).Why; {
	case why != "":
		return why
	case c.State == cluster.ClaimTaken && c.WaitsForController():
		return "a controller must attach the volume to the node" + lacksController(plugin)
	case alloc == nil || alloc.VolumeHolds == nil:
		return ""
	}
	for _, hold := range alloc.VolumeHolds.Volumes {
		if hold.Key() == c.Key() {
			return cmp.Or(hold.Reason, "the client must unmount the volume")
		}
	}
	return ""
}

// lacksController is the text of a plugin, or nil, without a controller that can be called; otherwise empty.
func lacksController(p *volumes.Plugin) string {
	if p != nil && slices.ContainsFunc(p.Instances, func(i volumes.Instance) bool { return i.Type.Controller() && i.Attaches && i.Usable() }) {
		return ""
	}
	return ", and no healthy controller of its plugin attaches volumes"
}

// registerVolume answers PUT /v1/volume/csi/{id}.
func registerVolume(q *request) error {
	var body wire.VolumeRegisterRequest
	if err := jsonbody.Decode(q.body, &body); err != nil {
		return err
	}
	if len(body.Volumes) != 1 || body.Volumes[0] == nil {
		return failure.Bad("a request registers one volume")
	}
	w := body.Volumes[0]
	if w.Namespace == "" {
		w.Namespace = string(q.params.namespace)
	}
	v := w.Volume()
	if err := v.Validate(); err != nil {
		return failure.New(http.StatusBadRequest, err.Error())
	}
	switch {
	case string(v.ID) != q.PathValue("id"):
		return failure.Bad("Volume ID does not match")
	case v.Namespace == everyNamespace:
		return failure.Bad("a volume needs one namespace")
	}
	if err := checkRedacted(v); err != nil {
		return err
	}
	done, err := q.backend.Writer.RegisterVolume(q.Context(), v)
	if err != nil {
		return err
	}
	answer := wire.NewVolume(v, nil)
	answer.Secrets = redact.Values(v.Secrets)
	response := wire.VolumeRegisterResponse{Volumes: []*wire.Volume{answer}, Index: done.Index}
	if state, err := q.state(); err == nil { // the volume is registered in any case
		response.Warnings = strings.Trim(unknownPlugin(state, v)+"\n"+sameStorage(state, v), "\n")
	}
	return q.written(done.Index, response)
}

// checkRedacted refuses values that an answer has hidden: they would replace the real ones.
func checkRedacted(v *cluster.Volume) error {
	for _, values := range []map[string]string{v.Secrets, v.Context, v.Parameters} {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if values[key] == redact.Hidden {
				return failure.Bad("the value of %q is %q, which hides the real value in answers: give the real one", key, redact.Hidden)
			}
		}
	}
	return nil
}

// unknownPlugin warns if no node has reported the storage plugin of the volume, or is empty.
func unknownPlugin(s State, v *cluster.Volume) string {
	if plugins(s)[v.Plugin] != nil {
		return ""
	}
	return fmt.Sprintf("no node runs the storage plugin %q: allocations that use the volume cannot be placed until one does", v.Plugin)
}

// sameStorage warns of other volumes that are the same storage, or is empty. Each of them has claims of its
// own, so they do not keep two writers apart.
func sameStorage(s State, v *cluster.Volume) string {
	var same []string
	for o := range s.Volumes() {
		if o.Key() != v.Key() && o.Plugin == v.Plugin && o.ExternalID == v.ExternalID && len(same) < maxMatches {
			same = append(same, o.Key().String())
		}
	}
	if len(same) == 0 {
		return ""
	}
	return fmt.Sprintf("the external id %q of plugin %q is also that of %s: a claim of one volume does not exclude claims of another", v.ExternalID, v.Plugin, strings.Join(same, ", "))
}

// deregisterVolume answers DELETE /v1/volume/csi/{id}.
func deregisterVolume(q *request) error {
	force, err := flag(q.URL.Query(), "force")
	if err != nil {
		return err
	}
	done, err := q.backend.Writer.DeregisterVolume(q.Context(), volumeKey(q), force)
	if err != nil {
		return orNotFound(err, http.StatusNotFound, volumeNotFound)
	}
	return q.written(done.Index, struct{}{})
}

// detachVolume answers DELETE /v1/volume/csi/{id}/detach.
func detachVolume(q *request) error {
	force, err := flag(q.URL.Query(), "force")
	if err != nil {
		return err
	}
	node := q.URL.Query().Get("node")
	if node == "" {
		return failure.Bad("missing the parameter node")
	}
	done, err := q.backend.Writer.DetachVolume(q.Context(), volumeKey(q), cluster.NodeID(node), force)
	if err != nil {
		return orNotFound(err, http.StatusNotFound, claimNotFound)
	}
	return q.written(done.Index, struct{}{})
}

// listNodeVolumes answers GET /v1/node/{id}/volumes: what the client of the node needs to mount and
// unmount them. The node alone receives their secrets. A request may name one volume with its namespace.
func listNodeVolumes(q *request) error {
	one := cluster.VolumeKey{Namespace: q.params.namespace, ID: cluster.VolumeID(q.URL.Query().Get("volume"))}
	return q.read(func(s State) found {
		answer := wire.ClaimedVolumes{Index: s.Index(), Volumes: []wire.ClaimedVolume{}}
		claims := slices.Collect(listing.Where(s.ClaimsOnNode(q.nodeID()), func(c *cluster.VolumeClaim) bool {
			return one.ID == "" || c.Volume == one
		}))
		f := found{index: s.TableIndex(TableClaims)}
		if len(claims) > 0 {
			f = found{rows: len(claims)}
		}
		var last cluster.VolumeKey
		for _, c := range claims { // in the order of their volumes
			v := s.Volume(c.Volume)
			f.index = max(f.index, c.ModifyIndex)
			if v != nil {
				f.index = max(f.index, v.ModifyIndex)
			}
			if len(answer.Volumes) == 0 || last != c.Volume {
				last = c.Volume
				one := wire.ClaimedVolume{}
				if v != nil {
					one.Volume = wire.NewVolume(v, nil)
					if !q.byNode {
						one.Volume.Secrets = redact.Values(v.Secrets)
					}
				}
				answer.Volumes = append(answer.Volumes, one)
			}
			one := &answer.Volumes[len(answer.Volumes)-1]
			claim := wire.NewVolumeClaim(c)
			if !q.byNode {
				claim.PublishContext = redact.Values(c.PublishContext)
			}
			one.Claims = append(one.Claims, claim)
		}
		f.body = func() (any, error) { return answer, nil }
		return f
	})
}

// releaseClaims answers PUT /v1/client/{id}/claims: the client has taken volumes off its node. It
// leaves out claims of other nodes, and those that are gone.
func releaseClaims(q *request) error {
	var body wire.ClaimsRequest
	if err := jsonbody.Decode(q.body, &body); err != nil {
		return err
	}
	if len(body.Released) > cluster.MaxClaimChanges {
		return failure.Newf(http.StatusRequestEntityTooLarge, "a request releases %d claims at most", cluster.MaxClaimChanges)
	}
	if err := cmp.Or(nodeExists(q), checkClient(q)); err != nil {
		return err
	}
	done, err := q.backend.Writer.UpdateClaims(q.Context(), body.Changes(q.nodeID()))
	if err != nil {
		return err
	}
	s, err := q.state()
	if err != nil {
		return err
	}
	return q.written(done.Index, wire.ClaimsResponse{Index: done.Index, State: stateID(s)})
}

// plugins are the storage plugins that the nodes report, by id.
func plugins(s State) map[cluster.PluginID]*volumes.Plugin {
	byID := map[cluster.PluginID]*volumes.Plugin{}
	for _, p := range volumes.Plugins(s.Nodes()) {
		byID[p.ID] = p
	}
	return byID
}

// listPlugins answers GET /v1/plugins, by id.
func listPlugins(q *request) error {
	if kind := q.URL.Query().Get("type"); kind != "" && kind != string(cluster.VolumeCSI) {
		return q.answer([]*wire.PluginListStub{})
	}
	return q.read(func(s State) found {
		return found{index: s.TableIndex(TableNodes), body: func() (any, error) {
			return page(q, listing.List[*volumes.Plugin]{
				Rows: listing.Where(slices.Values(volumes.Plugins(s.Nodes())), func(p *volumes.Plugin) bool {
					return strings.HasPrefix(string(p.ID), q.params.prefix)
				}),
				Token:   func(p *volumes.Plugin) string { return string(p.ID) },
				Compare: func(p *volumes.Plugin, token string) int { return cmp.Compare(string(p.ID), token) },
				Full:    func(p *volumes.Plugin) any { return wire.NewPluginListStub(p) },
			}, wire.NewPluginListStub)
		}}
	})
}

// readPlugin answers GET /v1/plugin/csi/{id}. Only nodes and the allocations that run the plugin
// wake a reader that waits.
func readPlugin(q *request) error {
	return q.read(func(s State) found {
		p := plugins(s)[cluster.PluginID(q.PathValue("id"))]
		if p == nil {
			return found{index: s.TableIndex(TableNodes), missing: pluginNotFound}
		}
		f := found{index: s.TableIndex(TableNodes)}
		var allocs []*wire.AllocationListStub
		added := map[cluster.AllocID]bool{}
		for _, i := range p.Instances {
			if a := s.Alloc(i.Alloc); a != nil && !added[a.ID] {
				added[a.ID] = true
				f.index = max(f.index, a.ModifyIndex)
				allocs = append(allocs, wire.NewAllocationListStub(a))
			}
		}
		f.body = func() (any, error) {
			w := wire.NewPlugin(p)
			w.Allocations = append(w.Allocations, allocs...)
			return w, nil
		}
		return f
	})
}

// controllerCalls returns the failing calls of controllers for which the condition holds, or nil. A caller that may only
// read does not receive the errors: a plugin may repeat parameters of the volume. A call that fails wakes no reader
// that waits.
func controllerCalls(q *request, holds func(volumes.FailedCall) bool) (calls []wire.ControllerCall) {
	if q.backend.Controllers == nil {
		return nil
	}
	for _, c := range q.backend.Controllers.FailingCalls() {
		if !holds(c) {
			continue
		}
		if !q.author.Write && c.LastError != "" {
			c.LastError = redact.Hidden
		}
		calls = append(calls, wire.NewControllerCall(c))
	}
	return calls
}

// ofAlloc is the test for the calls that a claim of the allocation waits for.
func ofAlloc(s State, a *cluster.Allocation) func(volumes.FailedCall) bool {
	return func(c volumes.FailedCall) bool {
		if c.Node != a.NodeID {
			return false
		}
		for claim := range s.ClaimsOfVolume(c.Volume) {
			if claim.Alloc == a.ID {
				return true
			}
		}
		return false
	}
}

// ofJob is the test for the calls for volumes that the job uses.
func ofJob(j *cluster.Job) func(volumes.FailedCall) bool {
	return func(c volumes.FailedCall) bool {
		return slices.ContainsFunc(j.TaskGroups, func(g *cluster.TaskGroup) bool { return uses(j.Namespace, g, c.Volume) })
	}
}

// ofDrain is the test for the calls that a drain of the node may wait for: those for the node itself, and
// those for volumes of groups that still have an allocation there. Their replacements wait for the volumes.
func ofDrain(s State, node cluster.NodeID, left []wire.DrainAlloc) func(volumes.FailedCall) bool {
	return func(c volumes.FailedCall) bool {
		return c.Node == node || slices.ContainsFunc(left, func(a wire.DrainAlloc) bool {
			ns := cluster.Namespace(a.Namespace)
			return ns == c.Volume.Namespace && uses(ns, s.Job(cluster.JobKey{Namespace: ns, ID: cluster.JobID(a.JobID)}).Group(a.TaskGroup), c.Volume)
		})
	}
}

// uses reports whether allocations of the group, or nil, use the volume.
func uses(ns cluster.Namespace, g *cluster.TaskGroup, k cluster.VolumeKey) bool {
	return g != nil && ns == k.Namespace && slices.ContainsFunc(g.Volumes, func(r cluster.VolumeRequest) bool { return r.MayBe(k.ID) })
}
