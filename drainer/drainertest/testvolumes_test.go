package drainertest

import (
	"iter"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// TestVolumes passes a store with volumes, and finds each mistake.
func TestTestVolumes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(s *volumeStore)
		want string
	}{
		"a plain store":                    {edit: func(*volumeStore) {}},
		"a store without a feed of claims": {edit: func(s *volumeStore) { s.silent = true }, want: "a feed has not woken its subscriber for claim 2"},
		"a feed that names another host":   {edit: func(s *volumeStore) { s.host = "n2" }, want: "after claim 2: a feed has not reported host n1, which changed"},
		"a store without volumes":          {edit: func(s *volumeStore) { s.bare = true }, want: "it is no rules.VolumeView"},
		"views that change":                {edit: func(s *volumeStore) { s.mutable = true }, want: "the view of index 2: VolumePlugins(s1): yields [], want [disks]"},
		"one plugin for each allocation":   {edit: func(s *volumeStore) { s.first = true }, want: "yields [disks], want [disks files]"},
		"claims of other allocations":      {edit: func(s *volumeStore) { s.any = true }, want: "VolumePlugins(d1): yields disks, but it has claimed nothing"},
		"jobs without plugins":             {edit: func(s *volumeStore) { s.flaws.rows = withoutPlugins }, want: "Alloc(d1): its job has lost the id or the type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := TestVolumes(func() VolumeStore {
				s := &volumeStore{plainStore: newPlainStore(flaws{}), host: "n1"}
				c.edit(s)
				return s
			})
			if c.want == "" {
				must.NoError(t, err)
				return
			}
			must.ErrorContains(t, err, c.want)
		})
	}
}

// withoutPlugins returns rows whose jobs have lost the ids and types of their storage plugins.
func withoutPlugins(r Rows) Rows {
	for i, a := range r.Allocs {
		r.Allocs[i] = a.Copy()
		r.Allocs[i].Job = a.Job.WithoutCSIPlugins()
	}
	return r
}

// volumeStore is a plain store with claims, and its mistakes.
type volumeStore struct {
	*plainStore
	plugins *[]cluster.PluginID // of s1
	host    cluster.NodeID      // that its feeds name

	silent, bare, mutable, first, any bool
}

func (s *volumeStore) Claim(index uint64, _ cluster.AllocID, plugins []cluster.PluginID) error {
	if s.first && len(plugins) > 0 {
		plugins = plugins[:1]
	}
	if s.mutable && s.plugins != nil {
		*s.plugins = plugins
	} else {
		s.plugins = &plugins
	}
	if err := s.Commit(index, Rows{}); err != nil || s.silent {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeds {
		f.reported(drainer.Changes{Hosts: []cluster.NodeID{s.host}})
	}
	return nil
}

func (s *volumeStore) Snapshot() rules.View {
	if s.bare {
		return s.plainStore.Snapshot()
	}
	return volumeView{View: s.plainStore.Snapshot(), plugins: s.plugins, any: s.any}
}

// volumeView is a view with the claims of s1.
type volumeView struct {
	rules.View
	plugins *[]cluster.PluginID
	any     bool
}

func (v volumeView) VolumePlugins(a cluster.AllocID) iter.Seq[cluster.PluginID] {
	if v.plugins == nil || a != "s1" && !v.any {
		return slices.Values[[]cluster.PluginID](nil)
	}
	return slices.Values(*v.plugins)
}
