package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
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

// plugins are the storage plugins that the nodes report, by id.
func plugins(s State) map[cluster.PluginID]*volumes.Plugin {
	byID := map[cluster.PluginID]*volumes.Plugin{}
	for _, p := range volumes.Plugins(s.Nodes()) {
		byID[p.ID] = p
	}
	return byID
}

// volumesIndex is the index of what an answer about volumes is made of.
func volumesIndex(s State) uint64 {
	return max(s.TableIndex(TableVolumes), s.TableIndex(TableClaims), s.TableIndex(TableNodes))
}

// listVolumes answers GET /v1/volumes, by namespace, then id. Other types than csi have no volumes.
func listVolumes(q *request) error {
	values := q.URL.Query()
	if kind := values.Get("type"); kind != "" && kind != string(cluster.VolumeCSI) {
		return q.answer([]*wire.VolumeListStub{})
	}
	return q.read(func(s State) (found, error) {
		return found{index: volumesIndex(s), body: func() (any, error) {
			known := plugins(s)
			rows, err := page(q, list[*cluster.Volume]{
				rows: keep(s.Volumes(), func(v *cluster.Volume) bool { return wantsVolume(q, values, v) }),
				token: func(v *cluster.Volume) string {
					return jobToken(cluster.JobKey{Namespace: v.Namespace, ID: cluster.JobID(v.ID)})
				},
				compare: func(v *cluster.Volume, token string) int {
					k := parseJobToken(token)
					return v.Key().Compare(cluster.VolumeKey{Namespace: k.Namespace, ID: cluster.VolumeID(k.ID)})
				},
				full: func(v *cluster.Volume) any { return volumeStub(s, v, known) },
			})
			stubs := make([]*wire.VolumeListStub, len(rows))
			for i, v := range rows {
				stubs[i] = volumeStub(s, v, known)
			}
			return stubs, err
		}}, nil
	})
}

// wantsVolume reports whether the list has the volume: by its namespace, the prefix of its id, its
// plugin and a node that claims it.
func wantsVolume(q *request, values url.Values, v *cluster.Volume) bool {
	return q.params.within(v.Namespace) && strings.HasPrefix(string(v.ID), q.params.prefix) &&
		(values.Get("plugin_id") == "" || values.Get("plugin_id") == string(v.Plugin))
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

// readVolume answers GET /v1/volume/csi/{id}. No answer has the values of the volume's secrets.
func readVolume(q *request) error {
	return q.read(func(s State) (found, error) {
		v := s.Volume(volumeKey(q))
		if v == nil {
			return found{index: s.TableIndex(TableVolumes), missing: volumeNotFound}, nil
		}
		return found{index: volumesIndex(s), body: func() (any, error) {
			w := wire.NewVolume(v, plugins(s)[v.Plugin])
			w.Secrets = hidden(v.Secrets)
			if !q.author.Write {
				w.MountOptions, w.Context, w.Parameters = nil, hidden(v.Context), hidden(v.Parameters)
			}
			for c := range s.ClaimsOfVolume(v.Key()) {
				alloc := s.Alloc(c.Alloc)
				var stub *wire.AllocationListStub
				if alloc != nil {
					stub = wire.NewAllocationListStub(alloc)
				}
				waits := ""
				if c.State.OnNode() {
					waits = volumes.Unreachable(c, alloc, s.Node(c.Node)).Why
				}
				w.Claim(c, waits, stub)
			}
			return w, nil
		}}, nil
	})
}

// hidden are the keys of a map with values that are not shown.
func hidden(secrets map[string]string) map[string]string {
	keys := make(map[string]string, len(secrets))
	for key := range secrets {
		keys[key] = redacted
	}
	return keys
}

// registerVolume answers PUT /v1/volume/csi/{id}.
func registerVolume(q *request) error {
	var body wire.VolumeRegisterRequest
	if err := q.decode(&body); err != nil {
		return err
	}
	if len(body.Volumes) != 1 || body.Volumes[0] == nil {
		return fail(http.StatusBadRequest, "a request registers one volume")
	}
	w := body.Volumes[0]
	if w.Namespace == "" {
		w.Namespace = string(q.params.namespace)
	}
	v := w.Volume()
	if err := v.Validate(); err != nil {
		return fail(http.StatusBadRequest, err.Error())
	}
	switch {
	case string(v.ID) != q.PathValue("id"):
		return fail(http.StatusBadRequest, "Volume ID does not match")
	case v.Namespace == everyNamespace:
		return fail(http.StatusBadRequest, "a volume needs one namespace")
	}
	done, err := q.backend.Writer.RegisterVolume(q.Context(), v)
	if err != nil {
		return err
	}
	answer := wire.NewVolume(v, nil)
	answer.Secrets = hidden(v.Secrets)
	return q.written(done.Index, wire.VolumeRegisterResponse{Volumes: []*wire.Volume{answer}, Index: done.Index})
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
		return fail(http.StatusBadRequest, "missing the parameter node")
	}
	done, err := q.backend.Writer.DetachVolume(q.Context(), volumeKey(q), cluster.NodeID(node), force)
	if err != nil {
		return err
	}
	return q.written(done.Index, struct{}{})
}

// listPlugins answers GET /v1/plugins, by id.
func listPlugins(q *request) error {
	if kind := q.URL.Query().Get("type"); kind != "" && kind != string(cluster.VolumeCSI) {
		return q.answer([]*wire.PluginListStub{})
	}
	return q.read(func(s State) (found, error) {
		return found{index: s.TableIndex(TableNodes), body: func() (any, error) {
			stubs := []*wire.PluginListStub{}
			for _, p := range volumes.Plugins(s.Nodes()) {
				if strings.HasPrefix(string(p.ID), q.params.prefix) {
					stubs = append(stubs, wire.NewPluginListStub(p))
				}
			}
			return stubs, nil
		}}, nil
	})
}

// readPlugin answers GET /v1/plugin/csi/{id}.
func readPlugin(q *request) error {
	return q.read(func(s State) (found, error) {
		index := max(s.TableIndex(TableNodes), s.TableIndex(TableAllocs))
		p := plugins(s)[cluster.PluginID(q.PathValue("id"))]
		if p == nil {
			return found{index: index, missing: pluginNotFound}, nil
		}
		return found{index: index, body: func() (any, error) {
			w := wire.NewPlugin(p)
			seen := map[cluster.AllocID]bool{}
			for _, i := range p.Instances {
				if a := s.Alloc(i.Alloc); a != nil && !seen[a.ID] {
					seen[a.ID] = true
					w.Allocations = append(w.Allocations, wire.NewAllocationListStub(a))
				}
			}
			return w, nil
		}}, nil
	})
}

// listNodeVolumes answers GET /v1/node/{id}/volumes: what the client of the node needs to mount and
// unmount them. It has their secrets.
func listNodeVolumes(q *request) error {
	return q.read(func(s State) (found, error) {
		answer := wire.ClaimedVolumes{Index: s.Index(), Volumes: []wire.ClaimedVolume{}}
		claims := slices.Collect(s.ClaimsOnNode(q.nodeID()))
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
				}
				answer.Volumes = append(answer.Volumes, one)
			}
			one := &answer.Volumes[len(answer.Volumes)-1]
			one.Claims = append(one.Claims, wire.NewVolumeClaim(c))
		}
		f.body = func() (any, error) { return answer, nil }
		return f, nil
	})
}

// releaseClaims answers PUT /v1/client/{id}/claims: the client has taken volumes off its node. It
// leaves out claims of other nodes, and those that are gone.
func releaseClaims(q *request) error {
	var body wire.ClaimsRequest
	if err := q.decode(&body); err != nil {
		return err
	}
	if len(body.Released) > cluster.MaxClaimChanges {
		return fail(http.StatusRequestEntityTooLarge, fmt.Sprintf("a request releases %d claims at most", cluster.MaxClaimChanges))
	}
	if err := nodeExists(q); err != nil {
		return err
	}
	done, err := q.backend.Writer.UpdateClaims(q.Context(), body.Changes(q.nodeID()))
	if err != nil {
		return err
	}
	return q.written(done.Index, wire.ClaimsResponse{Index: done.Index})
}
