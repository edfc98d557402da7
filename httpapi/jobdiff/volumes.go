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
		d := &wire.ObjectDiff{Type: diffType(was != nil, is != nil, true), Name: "Volume", Fields: diffFields(was, is, volumeFields), Objects: []*wire.ObjectDiff{}}
		d.Objects = appendObject(d.Objects, "MountOptions", orNone(was).MountOptions, orNone(is).MountOptions, optionFields)
		to = appendDiff(to, d)
	}
	return to
}

func volumeFields(r *cluster.VolumeRequest) []field {
	return []field{
		{"AccessMode", string(r.Capability.Access)}, {"AttachmentMode", string(r.Capability.Attachment)}, {"Name", r.Name},
		{"PerAlloc", strconv.FormatBool(r.PerAlloc)}, {"ReadOnly", strconv.FormatBool(r.ReadOnly)}, {"Source", string(r.Source)},
		{"Type", string(r.Type)},
	}
}

func optionFields(o *cluster.MountOptions) []field {
	return []field{{"FSType", o.FSType}, {"MountFlags", strings.Join(o.Flags, ", ")}}
}

// appendMounts adds the mounts of a task that differ.
func appendMounts(to []*wire.ObjectDiff, before, after []cluster.VolumeMount) []*wire.ObjectDiff {
	for was, is := range pairs(before, after) {
		to = appendObject(to, "VolumeMount", was, is, mountFields)
	}
	return to
}

func mountFields(m *cluster.VolumeMount) []field {
	return []field{
		{"Destination", m.Destination}, {"PropagationMode", m.Propagation}, {"ReadOnly", strconv.FormatBool(m.ReadOnly)}, {"Volume", m.Volume},
	}
}

func pluginFields(p *cluster.CSIPlugin) []field {
	return []field{
		{"HealthTimeout", durationText(p.HealthTimeout)}, {"ID", string(p.ID)}, {"MountDir", p.MountDir},
		{"StagePublishBaseDir", p.StagePublishBaseDir}, {"Type", string(p.Type)},
	}
}
