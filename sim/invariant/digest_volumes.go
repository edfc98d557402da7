package invariant

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// The methods of this file add volumes and storage plugins.

func (d digest) storage(plugins []*cluster.StoragePlugin) digest {
	d = d.int(len(plugins))
	for _, p := range plugins {
		if p == nil {
			d = d.number(23)
			continue
		}
		d = text(text(text(d, p.ID), p.Type), p.Alloc).bool(p.Healthy)
		d = text(text(text(text(d, p.HealthDescription), p.Provider), p.Version), p.NodeID).number(uint64(p.MaxVolumes)).table(p.Topology.Segments)
		d = d.bool(p.NeedsController).bool(p.Stages).bool(p.Attaches).bool(p.ReadOnlyAttaches).time(p.UpdateTime)
	}
	return d
}

func (d digest) volumes(list []cluster.VolumeRequest) digest {
	d = d.int(len(list))
	for _, v := range list {
		d = text(text(text(d, v.Name), v.Type), v.Source).bool(v.ReadOnly).bool(v.PerAlloc)
		d = text(text(d, v.Capability.Access), v.Capability.Attachment)
		if o := v.MountOptions; o != nil {
			d = text(d, o.FSType).int(len(o.Flags))
			for _, flag := range o.Flags {
				d = text(d, flag)
			}
		}
	}
	return d
}

func (d digest) mounts(t *cluster.Task) digest {
	d = d.int(len(t.VolumeMounts))
	for _, m := range t.VolumeMounts {
		d = text(text(text(d, m.Volume), m.Destination).bool(m.ReadOnly), m.Propagation)
	}
	if p := t.CSIPlugin; p != nil {
		d = text(text(text(text(d, p.ID), p.Type), p.MountDir), p.StagePublishBaseDir).number(uint64(p.HealthTimeout))
	}
	return d
}

func (d digest) holds(h *cluster.VolumeHolds) digest {
	if h == nil {
		return d
	}
	d = d.int(h.More).int(len(h.Volumes))
	for _, v := range h.Volumes {
		d = text(text(text(d, v.Namespace), v.Volume), v.Alloc)
		d = text(text(d, v.Path), v.Reason).time(v.Since)
	}
	return d
}
