package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Volume is one volume, or several equal volumes. They are in the default namespace.
type Volume struct {
	// Names are the ids without indexes, and are never empty.
	Names []cluster.VolumeID
	// Indexes are those of volumes of single allocations. Zero is a volume without an index.
	Indexes Indexes
	// Plugin is the id of the storage plugin.
	Plugin cluster.PluginID `drain:"plugin,required"`
	// Access is the access mode. Empty is [DefaultAccess].
	Access cluster.AccessMode `drain:"access,=single-node-reader-only|single-node-writer|multi-node-reader-only|multi-node-single-writer|multi-node-multi-writer"`
	// Unregistered is printed as "absent": the volume does not exist. It can register later.
	Unregistered bool `drain:"absent"`
}

// DefaultAccess is the default of [Volume].Access.
const DefaultAccess = cluster.SingleNodeWriter

// IDs returns the ids of the volumes.
func (v *Volume) IDs() []cluster.VolumeID {
	if v.Indexes.Count == 0 {
		return slices.Clone(v.Names)
	}
	var ids []cluster.VolumeID
	for _, name := range v.Names {
		for i := range v.Indexes.Count {
			ids = append(ids, indexed(name, v.Indexes.First+i))
		}
	}
	return ids
}

func indexed(name cluster.VolumeID, index int) cluster.VolumeID {
	return cluster.VolumeID(fmt.Sprintf("%s[%d]", name, index))
}

// AccessMode returns the access mode.
func (v *Volume) AccessMode() cluster.AccessMode {
	if v.Access == "" {
		return DefaultAccess
	}
	return v.Access
}

// VolumeNamed returns the declaration of the volume that allocations with the request use, or nil. With
// PerAlloc it is that of the first one with the name.
func (s *Scenario) VolumeNamed(r VolumeUse) *Volume {
	for i := range s.Volumes {
		v := &s.Volumes[i]
		if r.PerAlloc == (v.Indexes.Count > 0) && slices.Contains(v.Names, r.Name) {
			return v
		}
	}
	return nil
}

// Service is the kind of volumes that a storage plugin serves. The zero value serves none.
type Service struct {
	Plugin cluster.PluginID
	// Type is the type. Empty is a node plugin.
	Type cluster.PluginType
	// Unstaged: it does not stage volumes.
	Unstaged bool
}

// PluginType returns the type.
func (s Service) PluginType() cluster.PluginType {
	if s.Type == "" {
		return cluster.PluginNode
	}
	return s.Type
}

func (s Service) text() string {
	parts := []string{string(s.Plugin)}
	if s.Type != "" {
		parts = append(parts, string(s.Type))
	}
	if s.Unstaged {
		parts = append(parts, unstagedText)
	}
	return strings.Join(parts, ":")
}

const unstagedText = "unstaged"

// pluginTypes are the types that are written. A node plugin is the default, and may be written too.
func pluginTypes() []string {
	return []string{string(cluster.PluginNode), string(cluster.PluginController), string(cluster.PluginMonolith), unstagedText}
}

func parseService(text string) (s Service, err error) {
	words := strings.Split(text, ":")
	s.Plugin = cluster.PluginID(words[0])
	if err := checkName(words[0]); err != nil {
		return s, err
	}
	for _, word := range words[1:] {
		switch {
		case word == unstagedText:
			s.Unstaged = true
		case !slices.Contains(pluginTypes(), word):
			return s, unknown("type", word, pluginTypes())
		case s.Type != "":
			return s, fmt.Errorf("%q: a plugin has one type", text)
		case cluster.PluginType(word) != cluster.PluginNode:
			s.Type = cluster.PluginType(word)
		}
	}
	return s, nil
}

// plugin is a parameter with or without a value: "plugin" or "plugin=disks:monolith".
func plugin(is *bool, serves *Service) field {
	return field{
		name: "plugin", bare: true,
		set: func(v string) (err error) {
			*is = true
			if v != "" {
				*serves, err = parseService(v)
			}
			return err
		},
		text: func() string {
			switch {
			case *serves != Service{}:
				return "plugin=" + serves.text()
			case *is:
				return "plugin"
			}
			return ""
		},
	}
}

// VolumeUse is a volume that each allocation of a group uses.
type VolumeUse struct {
	Name cluster.VolumeID
	// PerAlloc is printed as "data[]": each allocation uses the volume with its own index.
	PerAlloc bool
	ReadOnly bool
}

func (r VolumeUse) text() string {
	text := string(r.Name)
	if r.PerAlloc {
		text += "[]"
	}
	if r.ReadOnly {
		text += ":ro"
	}
	return text
}

// parseUse reads one of "data1,cache:ro,own[]".
func parseUse(before []VolumeUse, text string) (r VolumeUse, err error) {
	text, r.ReadOnly = strings.CutSuffix(text, ":ro")
	text, r.PerAlloc = strings.CutSuffix(text, "[]")
	r.Name, err = cluster.VolumeID(text), checkName(text)
	if slices.ContainsFunc(before, func(o VolumeUse) bool { return o.Name == r.Name }) {
		err = errors.Join(err, fmt.Errorf("%s is listed twice", r.Name))
	}
	return r, err
}

// volume reads "volume data1..data3 plugin=disks", or "volume data[0..2] plugin=disks".
func (p *parser) volume(words []string) error {
	text, words, err := subject("the volume's name", words)
	if err != nil {
		return err
	}
	head, at, err := parseIndexes(text)
	if err != nil {
		return err
	}
	names, err := p.scope.names(head)
	if err != nil {
		return err
	}
	v := Volume{Indexes: at}
	for _, n := range names {
		v.Names = append(v.Names, cluster.VolumeID(n))
	}
	if p.scope.room -= len(v.Names) * at.Count; p.scope.room < 0 {
		return errTooMany
	}
	for _, id := range v.IDs() {
		if line := p.scope.volumes[id]; line != 0 {
			return fmt.Errorf("volume %s is already on line %d", id, line)
		}
		p.scope.volumes[id] = p.line
	}
	_, err = params(p.scope.fields(&v), words)
	p.scenario.Volumes = append(p.scenario.Volumes, v)
	return err
}

// uses checks the volumes of a group.
func (p *parser) uses(key cluster.JobKey, g *Group) error {
	var errs []error
	for _, r := range g.Volumes {
		v := p.scenario.VolumeNamed(r)
		switch {
		case key.Namespace != cluster.DefaultNamespace:
			errs = append(errs, errors.New("volumes are in the default namespace"))
		case v == nil:
			errs = append(errs, fmt.Errorf("there is no volume %s", strings.TrimSuffix(r.text(), ":ro")))
		case !r.ReadOnly && !v.AccessMode().Writes():
			errs = append(errs, fmt.Errorf("volume %s is read only: write %s:ro", r.Name, r.text()))
		}
	}
	return errors.Join(errs...)
}

// realOnly refuses volumes and containers without real clients.
func (p *parser) realOnly() {
	s := p.scenario
	if s.Cluster.Clients == RealClients {
		return
	}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Containers {
			p.line = p.scope.nodes[n.IDs[0]]
			p.problem(fmt.Errorf("containers needs clients=%s", RealClients))
		}
	}
	if s.Cluster.Hold > 0 {
		p.line = p.once["cluster"]
		p.problem(fmt.Errorf("hold needs clients=%s", RealClients))
	}
	if s.Cluster.Retention > 0 {
		p.line = p.once["cluster"]
		p.problem(fmt.Errorf("retention needs clients=%s", RealClients))
	}
	if len(s.Volumes) > 0 {
		p.line = p.scope.volumes[s.Volumes[0].IDs()[0]]
		p.problem(fmt.Errorf("volumes need clients=%s", RealClients))
	}
	for j, g := range s.EachGroup() {
		if earlier := p.scope.jobs[j.Key]; g.WritesMB > 0 && earlier != nil {
			p.line = earlier.line
			p.problem(fmt.Errorf("writes needs clients=%s", RealClients))
		}
		if earlier := p.scope.jobs[j.Key]; g.Serves != (Service{}) && earlier != nil {
			p.line = earlier.line
			p.problem(fmt.Errorf("plugin=%s needs clients=%s", g.Serves.text(), RealClients))
		}
	}
}

// UsesVolumes reports whether the scenario has volumes or storage plugins that serve volumes.
func (s *Scenario) UsesVolumes() bool {
	for _, g := range s.EachGroup() {
		if g.Serves != (Service{}) {
			return true
		}
	}
	return len(s.Volumes) > 0
}

// theVolume reads one declared volume.
func (p *scope) theVolume(text string) (cluster.VolumeID, error) {
	id := cluster.VolumeID(text)
	if p.volumes[id] == 0 {
		return id, fmt.Errorf("there is no volume %s", text)
	}
	return id, nil
}

// VolumeChange changes a volume, or detaches it from a node.
type VolumeChange struct {
	Volume cluster.VolumeID
	Change VolumeVerb
	// Node is the node from which a volume is detached.
	Node cluster.NodeID `drain:"on"`
	// Force detaches or deregisters a volume that allocations use.
	Force bool `drain:"force"`
}

// VolumeVerb is a change of a volume.
type VolumeVerb string

// The changes of volumes.
const (
	VolumeRegister   VolumeVerb = "register" // as the file declares it
	VolumeDeregister VolumeVerb = "deregister"
	VolumeDetach     VolumeVerb = "detach"
)

// only returns those of its parameters that its change has.
func (o *VolumeChange) only(fields []field) []field {
	switch o.Change {
	case VolumeDetach:
		fields[0].required = true
		return fields
	case VolumeDeregister:
		return fields[1:]
	}
	return nil
}
