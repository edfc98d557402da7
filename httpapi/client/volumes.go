package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Volumes are the requests about volumes and storage plugins. It is safe for concurrent use. The zero
// value is not usable: see [Client.Volumes].
type Volumes struct{ client *Client }

// Volumes returns the requests about volumes, in the client's namespace.
func (c *Client) Volumes() Volumes { return Volumes{c} }

// List lists the volumes by id.
func (v Volumes) List(ctx context.Context, q Query) ([]*wire.VolumeListStub, Answer, error) {
	return get[[]*wire.VolumeListStub](ctx, v.client, "/v1/volumes", q.values())
}

// OnNode lists the volumes of all namespaces that allocations on the node claim.
func (v Volumes) OnNode(ctx context.Context, node cluster.NodeID) ([]*wire.VolumeListStub, Answer, error) {
	values := url.Values{"node_id": {string(node)}, "namespace": {"*"}}
	return get[[]*wire.VolumeListStub](ctx, v.client, "/v1/volumes", values)
}

// Read reads a volume by its whole id.
func (v Volumes) Read(ctx context.Context, id string, q Query) (*wire.Volume, Answer, error) {
	return get[*wire.Volume](ctx, v.client, volumePath(id, ""), q.values())
}

// Register registers a volume, or changes a registered one.
func (v Volumes) Register(ctx context.Context, volume *wire.Volume) (*wire.VolumeRegisterResponse, Answer, error) {
	return put[*wire.VolumeRegisterResponse](ctx, v.client, volumePath(volume.ID, ""), wire.VolumeRegisterRequest{Volumes: []*wire.Volume{volume}})
}

// Deregister deletes a volume: with force also one with claims.
func (v Volumes) Deregister(ctx context.Context, id string, force bool) error {
	_, _, err := call[wire.Nothing](ctx, v.client, http.MethodDelete, volumePath(id, ""), forced(force), nil)
	return err
}

// Detach makes a node unmount a volume from allocations that have ended. With force the servers go
// on as if the node had.
func (v Volumes) Detach(ctx context.Context, id string, node cluster.NodeID, force bool) error {
	values := forced(force)
	values.Set("node", string(node))
	_, _, err := call[wire.Nothing](ctx, v.client, http.MethodDelete, volumePath(id, "/detach"), values, nil)
	return err
}

// Plugins lists the storage plugins by id.
func (v Volumes) Plugins(ctx context.Context, q Query) ([]*wire.PluginListStub, Answer, error) {
	return get[[]*wire.PluginListStub](ctx, v.client, "/v1/plugins", q.values())
}

// Plugin reads a storage plugin by its whole id.
func (v Volumes) Plugin(ctx context.Context, id string, q Query) (*wire.Plugin, Answer, error) {
	return get[*wire.Plugin](ctx, v.client, "/v1/plugin/csi/"+pathElement(id), q.values())
}

func volumePath(id, what string) string { return "/v1/volume/csi/" + pathElement(id) + what }

func forced(force bool) url.Values { return url.Values{"force": {strconv.FormatBool(force)}} }

// ClaimedVolume is a volume with its claims on one node.
type ClaimedVolume struct {
	// Volume is nil if the volume was deregistered by force: its client unmounts it.
	Volume *cluster.Volume
	Claims []*cluster.VolumeClaim
}

// Volumes reads the volumes that allocations on the node claim, and waits for a change after the index, for
// at most wait. With index zero it does not wait.
func (s NodeSide) Volumes(ctx context.Context, index uint64, wait time.Duration) ([]ClaimedVolume, uint64, error) {
	return s.volumes(ctx, Query{Index: index, Wait: wait}.values())
}

// Volume reads one volume with its claims on the node; nil if there is no claim.
func (s NodeSide) Volume(ctx context.Context, k cluster.VolumeKey) (*ClaimedVolume, error) {
	values := Query{}.values()
	values.Set("namespace", string(k.Namespace))
	values.Set("volume", string(k.ID))
	all, _, err := s.volumes(ctx, values)
	for _, v := range all { // a server of an older build answers with all volumes
		if len(v.Claims) > 0 && v.Claims[0].Volume == k {
			return &v, nil
		}
	}
	return nil, err
}

func (s NodeSide) volumes(ctx context.Context, values url.Values) ([]ClaimedVolume, uint64, error) {
	w, answer, err := get[wire.ClaimedVolumes](ctx, s.client, nodePath(string(s.id), "/volumes"), values)
	if err != nil {
		return nil, 0, err
	}
	var all []ClaimedVolume
	for _, one := range w.Volumes {
		v := ClaimedVolume{}
		if one.Volume != nil {
			v.Volume = one.Volume.Volume()
			v.Volume.ModifyIndex = one.Volume.ModifyIndex
		}
		for _, c := range one.Claims {
			v.Claims = append(v.Claims, c.Claim())
		}
		all = append(all, v)
	}
	return all, answer.Index, nil
}

// Release reports to the servers that the client has taken the volumes of the claims off the node, at most
// [cluster.MaxClaimChanges]. Claims that are gone are left out.
func (s NodeSide) Release(ctx context.Context, claims []cluster.ClaimKey) (wire.ClaimsResponse, error) {
	request := wire.ClaimsRequest{Released: []wire.ClaimRelease{}}
	for _, k := range claims {
		request.Released = append(request.Released, wire.ClaimRelease{Namespace: string(k.Volume.Namespace), Volume: string(k.Volume.ID), AllocID: string(k.Alloc)})
	}
	r, _, err := put[wire.ClaimsResponse](ctx, s.client, s.path("/claims"), request)
	return r, err
}
