package volumes

import (
	"cmp"
	"iter"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Call is a call of a controller that is due: it attaches a volume to a node, or detaches it.
type Call struct {
	Volume *cluster.Volume
	Node   cluster.NodeID
	// Detach means that the controller detaches the volume. Otherwise it attaches the volume.
	Detach bool
	// ExternalNodeID is the id of the node in the storage plugin when the claim was made.
	ExternalNodeID string
	// Capability contains the modes of the claims.
	Capability cluster.VolumeCapability
	// Claims are the claims that wait for the answer, by allocation. There are at most
	// [cluster.MaxClaimChanges].
	Claims []cluster.ClaimKey
	// Controllers are the nodes whose controllers can execute the call, by id. It may be empty.
	Controllers []cluster.NodeID
}

// Controller returns the node whose controller is called after a number of failures, or the empty
// id if there is no controller. Each failure moves to the next node.
func (c *Call) Controller(failures int) cluster.NodeID {
	if len(c.Controllers) == 0 {
		return ""
	}
	return c.Controllers[failures%len(c.Controllers)]
}

// Changes returns the changes of the claims after a successful call. publishContext is the answer
// of a controller that has attached the volume, or nil.
func (c *Call) Changes(publishContext map[string]string) (changes []cluster.ClaimChange) {
	cause := cluster.CauseAttached
	if c.Detach {
		cause = cluster.CauseDetached
	}
	for _, k := range c.Claims {
		changes = append(changes, cluster.ClaimChange{Claim: k, Node: c.Node, Cause: cause, PublishContext: publishContext})
	}
	return changes
}

// Waiting is the part of the state that [Due] reads.
type Waiting interface {
	// Claims yields all claims by volume and allocation.
	Claims() iter.Seq[*cluster.VolumeClaim]
	// Volume returns the volume, or nil.
	Volume(cluster.VolumeKey) *cluster.Volume
	// Nodes yields all nodes.
	Nodes() iter.Seq[*cluster.Node]
}

// Due returns the calls of controllers that claims wait for: at most one for each volume and node,
// sorted by volume and node. A volume is detached from a node when no allocation there may use it
// any more. shared are changes of claims that need no call, because the volume is already attached
// for another claim on the node; there are at most [cluster.MaxClaimChanges]. Due reads all claims.
func Due(v Waiting) (calls []*Call, shared []cluster.ClaimChange) {
	controllers := make(map[cluster.PluginID][]cluster.NodeID)
	var ofVolume []*cluster.VolumeClaim
	settle := func() {
		if len(ofVolume) == 0 {
			return
		}
		// A call is for one node. The sort keeps the order of allocations within a node.
		slices.SortStableFunc(ofVolume, func(a, b *cluster.VolumeClaim) int { return cmp.Compare(a.Node, b.Node) })
		volume := v.Volume(ofVolume[0].Volume)
		for rest := ofVolume; volume != nil && len(rest) > 0; {
			end := 1
			for end < len(rest) && rest[end].Node == rest[0].Node {
				end++
			}
			call, same := due(volume, rest[:end])
			rest = rest[end:]
			shared = append(shared, same...)
			if call == nil {
				continue
			}
			id := volume.Plugin
			if _, exists := controllers[id]; !exists {
				controllers[id] = attaching(v, id)
			}
			call.Controllers = controllers[id]
			calls = append(calls, call)
		}
		ofVolume = ofVolume[:0]
	}
	for c := range v.Claims() {
		if len(ofVolume) > 0 && ofVolume[0].Volume != c.Volume {
			settle()
		}
		ofVolume = append(ofVolume, c)
	}
	settle()
	return calls, shared[:min(len(shared), cluster.MaxClaimChanges)]
}

// due is Due for the claims of one volume on one node. The call has no controllers yet.
func due(volume *cluster.Volume, claims []*cluster.VolumeClaim) (call *Call, shared []cluster.ClaimChange) {
	var inUse bool
	var attached *cluster.VolumeClaim
	var attach, detach []*cluster.VolumeClaim
	for _, c := range claims {
		inUse = inUse || c.State.OnNode()
		switch {
		case c.State.OnNode() && c.Attached:
			attached = c
		case c.State == cluster.ClaimTaken && c.WaitsForController():
			attach = append(attach, c)
		case c.State == cluster.ClaimNodeDetached && c.Controller:
			detach = append(detach, c)
		}
	}
	wait := attach
	if !inUse {
		wait = detach
	}
	if len(wait) == 0 {
		return nil, nil
	}
	wait = wait[:min(len(wait), cluster.MaxClaimChanges)]
	call = &Call{Volume: volume, Node: wait[0].Node, Detach: !inUse, Capability: wait[0].Capability}
	for _, c := range wait {
		call.Claims = append(call.Claims, c.Key())
		call.ExternalNodeID = cmp.Or(call.ExternalNodeID, c.ExternalNodeID)
	}
	if attached != nil {
		return nil, call.Changes(attached.PublishContext)
	}
	return call, nil
}

// attaching returns the nodes with a usable controller of the plugin that attaches volumes, by id.
func attaching(v Waiting, id cluster.PluginID) (nodes []cluster.NodeID) {
	for n := range v.Nodes() {
		if p := n.ControllerPlugin(id); p != nil && p.Attaches && (Instance{n, p}).Usable() {
			nodes = append(nodes, n.ID)
		}
	}
	slices.Sort(nodes)
	return nodes
}
