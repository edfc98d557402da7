package node

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	api "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// claimedHere are test servers with one claim, or none.
type claimedHere struct {
	*httpServers
	volume   *cluster.Volume
	claim    *cluster.VolumeClaim
	released []wire.ClaimRelease
	// then is the claim after its release.
	then *cluster.VolumeClaim
	// live are the ids of the node's allocations, or nil if the answer is a list of changes.
	live []string
}

func newClaimed(t *testing.T) *claimedHere {
	s := &claimedHere{
		volume: &cluster.Volume{
			Namespace: "default", ID: "data", ExternalID: "ext", Plugin: "disks", Secrets: map[string]string{"key": "secret"},
			Context: map[string]string{"a": "b"}, MountOptions: &cluster.MountOptions{FSType: "ext4"}, Capabilities: []cluster.VolumeCapability{manyWriters},
		},
		claim: &cluster.VolumeClaim{Volume: cluster.VolumeKey{Namespace: "default", ID: "data"}, Alloc: "a", Node: "n1", Mode: cluster.ClaimWrite, Capability: manyWriters},
	}
	s.httpServers = newServers(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /v1/node/n1/volumes":
			answer := wire.ClaimedVolumes{}
			if s.claim != nil {
				one := wire.ClaimedVolume{Claims: []wire.VolumeClaim{wire.NewVolumeClaim(s.claim)}}
				if s.volume != nil {
					one.Volume = wire.NewVolume(s.volume, nil)
				}
				answer.Volumes = append(answer.Volumes, one)
			}
			must.NoError(t, json.NewEncoder(w).Encode(answer))
		case "GET /v1/node/n1/allocations":
			w.Header().Set("X-Nomad-Index", "7")
			must.NoError(t, json.NewEncoder(w).Encode(wire.AllocChanges{ClusterID: "c", Index: 7, Live: s.live}))
		case "PUT /v1/client/n1/claims":
			var body wire.ClaimsRequest
			must.NoError(t, json.NewDecoder(r.Body).Decode(&body))
			s.released, s.claim = append(s.released, body.Released...), s.then
			must.NoError(t, json.NewEncoder(w).Encode(wire.ClaimsResponse{Index: 7, State: wire.StateID{Index: 8, History: "h"}}))
		default:
			http.NotFound(w, r)
		}
	})
	return s
}

var dataOfA = cluster.ClaimKey{Volume: cluster.VolumeKey{Namespace: "default", ID: "data"}, Alloc: "a"}

func TestHTTPServers_claim(t *testing.T) {
	t.Parallel()
	s := newClaimed(t)
	s.claim.PublishContext = map[string]string{"device": "sdb"}
	got, err := s.ClaimVolume(t.Context(), dataOfA)
	must.NoError(t, err)
	must.Eq(t, storage.Claimed{
		Plugin: "disks", ExternalID: "ext", Options: &cluster.MountOptions{FSType: "ext4"}, PublishContext: map[string]string{"device": "sdb"},
		Context: map[string]string{"a": "b"}, Secrets: map[string]string{"key": "secret"},
	}, got)

	refuses := func(words string, class storage.Class) {
		t.Helper()
		_, err := s.ClaimVolume(t.Context(), dataOfA)
		must.ErrorContains(t, err, words)
		must.EqOp(t, class, storage.ClassOf(err))
	}
	s.claim.Controller = true
	refuses("a controller must attach the volume", storage.Transient)
	s.claim.Attached = true
	_, err = s.ClaimVolume(t.Context(), dataOfA)
	must.NoError(t, err)
	s.claim.State = cluster.ClaimNodeDetached
	refuses("the claim is released", storage.Refused)
	s.claim.State, s.volume = cluster.ClaimTaken, nil
	refuses("deregistered by force", storage.Refused)
	s.claim = nil
	refuses("the servers no longer have the claim of the allocation", storage.Refused)
}

// A claim is released once. The release ends when a controller has detached the volume.
func TestHTTPServers_release(t *testing.T) {
	t.Parallel()
	s := newClaimed(t)
	detaching := s.claim.Copy()
	detaching.State = cluster.ClaimNodeDetached
	s.then = detaching
	must.ErrorContains(t, s.ReleaseVolume(t.Context(), dataOfA), "a controller must detach the volume")
	must.ErrorContains(t, s.ReleaseVolume(t.Context(), dataOfA), "a controller must detach the volume")
	must.Eq(t, []wire.ClaimRelease{{Namespace: "default", Volume: "data", AllocID: "a"}}, s.released)
	s.claim, s.then = nil, nil
	must.NoError(t, s.ReleaseVolume(t.Context(), dataOfA))
	must.SliceLen(t, 1, s.released)
	must.Eq(t, wire.StateID{Index: 8, History: "h"}, s.shown.take(), must.Sprint("a release is a write too"))
}

// The client reads its claims when it gets a list of its allocations, and not after other changes.
func TestHTTPServers_changesWithClaims(t *testing.T) {
	t.Parallel()
	s := newClaimed(t)
	s.claim.CreateIndex = 5
	w, err := s.Changes(t.Context(), api.Since{ClusterID: "c", Index: 6})
	must.NoError(t, err)
	must.SliceEmpty(t, w.Claims)
	s.live = []string{"b"}
	w, err = s.Changes(t.Context(), api.Since{ClusterID: "c", Index: 6})
	must.NoError(t, err)
	must.True(t, w.Complete)
	must.Eq(t, []*cluster.VolumeClaim{s.claim}, w.Claims)
}

// A client claims and releases volumes after its registration. Before it, a release of an earlier client may be in
// flight. Bug: a client with an old record mounted a volume, and then the late release freed its claim.
func TestVolumes_claimBeforeTheRegistration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newContact(&cluster.Node{ID: "n"}, &scripted{}, quiet())
		s := &shell{contact: c, life: t.Context()}
		v := &volumes{shell: s, servers: new(lastServers)}
		var claimed, released error
		began := time.Now()
		v.Claim(storage.Request{}, func(_ storage.Claimed, err error) { claimed = err })
		v.Release(storage.Request{}, func(err error) { released = err })
		s.running.Wait()
		must.EqOp(t, claimTimeout, time.Since(began))
		for _, err := range []error{claimed, released} {
			must.ErrorContains(t, err, "the client has not registered yet")
			must.EqOp(t, storage.Transient, storage.ClassOf(err), must.Sprint("it is retried"))
		}

		time.AfterFunc(time.Minute, func() { close(c.registered) })
		began = time.Now()
		v.Claim(storage.Request{}, func(_ storage.Claimed, err error) { claimed = err })
		v.Release(storage.Request{}, func(err error) { released = err })
		s.running.Wait()
		must.EqOp(t, time.Minute, time.Since(began))
		must.ErrorContains(t, claimed, "the node is being destroyed")
		must.NoError(t, released)
	})
}
