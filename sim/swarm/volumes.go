package swarm

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// oddsOfVolumes is the probability that a world with real clients has volumes. The other worlds draw what they
// drew without volumes.
const oddsOfVolumes = 0.25

// storage is the id of the storage plugin of a world.
const storage cluster.PluginID = "disks"

// drawStorage draws the jobs of the storage plugin. Its node plugins run on every node at the beginning, or
// on most.
func (m *population) drawStorage() {
	if !m.draft.stored {
		return
	}
	d := m.draft.dice("storage")
	m.draft.s.Cluster.Hold = d.span(5*time.Second, 80*time.Second)
	serves := scenario.Service{Plugin: storage, Unstaged: d.odds(0.25)}
	controllers := d.odds(0.6)
	if controllers && d.odds(0.3) {
		serves.Type, controllers = cluster.PluginMonolith, false
	}
	m.drawService(d, "disks", cluster.JobSystem, serves)
	if controllers {
		serves.Type = cluster.PluginController
		m.drawService(d, "attach", cluster.JobService, serves)
	}
}

func (m *population) drawService(d dice, name string, t cluster.JobType, serves scenario.Service) {
	g := scenario.Group{Name: name, Count: 1, Plugin: true, Serves: serves}
	j := scenario.Job{Key: cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: cluster.JobID(name)}}
	if t == cluster.JobService {
		g.Count = d.between(1, 2)
		m.drawPace(d, &g)
	} else {
		j.Type = t
	}
	m.drawStop(d, &g)
	j.Groups = []scenario.Group{g}
	m.draft.s.Jobs = append(m.draft.s.Jobs, j)
	at := len(m.draft.s.Jobs) - 1
	added := &group{job: at, key: cluster.GroupKey{Job: j.Key, Name: name}}
	if t == cluster.JobService {
		m.add(added, &g, m.spots(d, g.Count, nil), scenario.Alloc{})
	} else {
		m.add(added, &g, m.nodes, scenario.Alloc{})
		for _, n := range m.nodes {
			n.load++
		}
	}
	m.groups = append(m.groups, added)
}

// drawVolumes lets groups use volumes.
func (m *population) drawVolumes() {
	if !m.draft.stored {
		return
	}
	d := m.draft.dice("volumes")
	strays := m.strays()
	for j, g := range m.draft.s.EachGroup() {
		key := cluster.GroupKey{Job: j.Key, Name: g.Name}
		if g.Plugin || j.Type.EveryNode() || j.Key.Namespace != cluster.DefaultNamespace || strays[key] || !d.odds(0.7) {
			continue
		}
		m.drawUses(d, g, fmt.Sprintf("%s-%s", j.Key.ID, g.Name), m.indexes(key))
	}
}

// drawUses draws volumes that all allocations of a group can have, each one or two.
func (m *population) drawUses(d dice, g *scenario.Group, name string, indexes int) {
	if own := d.odds(0.6); own {
		id := cluster.VolumeID("own-" + name)
		m.draft.s.Volumes = append(m.draft.s.Volumes, scenario.Volume{
			Names: []cluster.VolumeID{id}, Plugin: storage, Indexes: scenario.Indexes{Count: max(indexes, g.Count) + d.between(0, 2)},
		})
		g.Volumes = append(g.Volumes, scenario.VolumeUse{Name: id, PerAlloc: true})
		if d.odds(0.7) {
			return
		}
	}
	id := cluster.VolumeID("shared-" + name)
	v := scenario.Volume{
		Names: []cluster.VolumeID{id}, Plugin: storage,
		Access: one(d, cluster.MultiNodeMultiWriter, cluster.MultiNodeMultiWriter, cluster.MultiNodeSingleWriter, cluster.MultiNodeReader),
	}
	if indexes <= 1 && d.odds(0.5) {
		v.Access = ""
	}
	m.draft.s.Volumes = append(m.draft.s.Volumes, v)
	writes := v.Access == cluster.MultiNodeMultiWriter || indexes <= 1 && v.Access != cluster.MultiNodeReader
	g.Volumes = append(g.Volumes, scenario.VolumeUse{Name: id, ReadOnly: !writes || d.odds(0.2)})
}

// drawVolumeChanges draws changes of volumes by operators. A deregistered volume is registered again before
// the calm begins: without it, the allocations of its group cannot move.
func (m *edits) drawVolumeChanges() {
	var users []*group
	for _, g := range m.population.groups {
		if len(m.population.specOf(g).Volumes) > 0 {
			users = append(users, g)
		}
	}
	if len(users) == 0 {
		return
	}
	d := m.draft.dice("volumes/changes")
	for range m.draft.often(d, volumeDetach) {
		id, node := m.drawVolume(d, users)
		m.draft.happens(m.story.moment(d), &scenario.VolumeChange{Volume: id, Change: scenario.VolumeDetach, Node: node, Force: d.odds(0.7)})
	}
	for range m.draft.often(d, volumeChange) {
		id, _ := m.drawVolume(d, users)
		at := m.story.moment(d)
		if d.odds(0.7) {
			m.draft.happens(at, &scenario.VolumeChange{Volume: id, Change: scenario.VolumeDeregister, Force: d.odds(0.7)})
			at = min(at+d.span(10*time.Millisecond, time.Minute), m.draft.calm-time.Millisecond)
		}
		m.draft.happens(at, &scenario.VolumeChange{Volume: id, Change: scenario.VolumeRegister})
	}
}

// drawVolume draws a volume of one of the groups, and a node that mostly has an allocation with it.
func (m *edits) drawVolume(d dice, users []*group) (cluster.VolumeID, cluster.NodeID) {
	g := m.story.touched(d, users)
	use, index, node := one(d, m.population.specOf(g).Volumes...), d.IntN(max(1, len(g.on))), m.story.somewhere(d)
	if index < len(g.on) && d.odds(0.7) {
		node = g.on[index]
	}
	v := m.draft.s.VolumeNamed(use)
	return v.IDs()[min(index, len(v.IDs())-1)], node
}

// strays are the groups with allocations that no plan could have placed with volumes: they have ended, or
// their node does not exist.
func (m *population) strays() map[cluster.GroupKey]bool {
	existing := map[cluster.NodeID]bool{}
	for _, n := range m.nodes {
		existing[n.id] = true
	}
	strays := map[cluster.GroupKey]bool{}
	for i := range m.draft.s.Allocs {
		a := &m.draft.s.Allocs[i]
		for _, id := range a.On {
			if a.Client != "" || !existing[id] {
				strays[a.Group] = true
			}
		}
	}
	return strays
}

// indexes counts the indexes of a group's allocations.
func (m *population) indexes(key cluster.GroupKey) int {
	most := 0
	for i := range m.draft.s.Allocs {
		if a := &m.draft.s.Allocs[i]; a.Group == key {
			most = max(most, a.Indexes.First+a.Indexes.Count)
		}
	}
	return most
}
