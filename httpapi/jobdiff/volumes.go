package jobdiff

import (
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// appendVolumes adds the requests for volumes that differ, by their names.
func appendVolumes(to []*wire.ObjectDiff, before, after []cluster.VolumeRequest) []*wire.ObjectDiff {
	names := func(requests []cluster.VolumeRequest) (list []string) {
		for _, r := range requests {
			list = append(list, r.Name)
		}
		return list
	}
	find := func(requests []cluster.VolumeRequest, name string) *cluster.VolumeRequest {
		for i := range requests {
			if requests[i].Name == name {
				return &requests[i]
			}
		}
		return nil
	}
	for _, name := range union(names(before), names(after)) {
		was, is := find(before, name), find(after, name)
		d := &wire.ObjectDiff{Name: "Volume", Fields: diffFields(volumeFields(was), volumeFields(is)), Objects: []*wire.ObjectDiff{}}
		d.Objects = appendObject(d.Objects, "MountOptions", optionFields(orNone(was).MountOptions), optionFields(orNone(is).MountOptions))
		if len(d.Fields)+len(d.Objects) > 0 {
			d.Type = diffType(was != nil, is != nil, true)
			to = append(to, d)
		}
	}
	return to
}

func volumeFields(r *cluster.VolumeRequest) []field {
	if r == nil {
		return nil
	}
	return []field{
		{"AccessMode", string(r.Capability.Access)}, {"AttachmentMode", string(r.Capability.Attachment)}, {"Name", r.Name},
		{"PerAlloc", strconv.FormatBool(r.PerAlloc)}, {"ReadOnly", strconv.FormatBool(r.ReadOnly)}, {"Source", string(r.Source)},
		{"Type", string(r.Type)},
	}
}

func optionFields(o *cluster.MountOptions) []field {
	if o == nil {
		return nil
	}
	return []field{{"FSType", o.FSType}, {"MountFlags", strings.Join(o.Flags, ", ")}}
}

// appendMounts adds the mounts of a task that differ. They have no key but their place in the list.
func appendMounts(to []*wire.ObjectDiff, before, after []cluster.VolumeMount) []*wire.ObjectDiff {
	fields := func(mounts []cluster.VolumeMount, i int) []field {
		if i >= len(mounts) {
			return nil
		}
		m := mounts[i]
		return []field{
			{"Destination", m.Destination}, {"PropagationMode", m.Propagation}, {"ReadOnly", strconv.FormatBool(m.ReadOnly)}, {"Volume", m.Volume},
		}
	}
	for i := range max(len(before), len(after)) {
		to = appendObject(to, "VolumeMount", fields(before, i), fields(after, i))
	}
	return to
}

func pluginFields(p *cluster.CSIPlugin) []field {
	if p == nil {
		return nil
	}
	return []field{
		{"HealthTimeout", durationText(p.HealthTimeout)}, {"ID", string(p.ID)}, {"MountDir", p.MountDir},
		{"StagePublishBaseDir", p.StagePublishBaseDir}, {"Type", string(p.Type)},
	}
}
