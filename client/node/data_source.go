package node

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/client/datacopy"
	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// dataSource opens the data that ended allocations keep.
type dataSource struct {
	core   *client.Core
	roster *roster
	tasks  *tasks
}

var _ nodeapi.Data = (*dataSource)(nil)

// Open implements [nodeapi.Data].
func (d *dataSource) Open(alloc string, folders []string) (sources []datacopy.Source, end func(), err error) {
	a := d.roster.get(alloc)
	switch {
	case a == nil:
		return nil, nil, fmt.Errorf("%w: the node does not have allocation %q", nodeapi.ErrUnknown, alloc)
	case !a.ended:
		return nil, nil, fmt.Errorf("%w: allocation %q has not ended", nodeapi.ErrState, alloc)
	case a.kept == nil:
		return nil, nil, fmt.Errorf("%w: the node does not keep the data of allocation %q", nodeapi.ErrUnknown, alloc)
	}
	switch holder := d.roster.get(string(a.holder)); {
	case holder == nil:
		return nil, nil, fmt.Errorf("%w: the node does not have allocation %q, to which the data of allocation %q has moved", nodeapi.ErrUnknown, a.holder, alloc)
	case !holder.ended:
		return nil, nil, fmt.Errorf("%w: allocation %q, to which the data of allocation %q has moved, has not ended", nodeapi.ErrState, a.holder, alloc)
	}
	tasks := d.tasks.tasksOf(a.kept)
	all := allocdir.DataFolders(tasks)
	if len(folders) > 0 {
		all = slices.DeleteFunc(all, func(f string) bool { return !slices.Contains(folders, f) })
	}
	owners, err := allocdir.OwnersOf(tasks)
	if err != nil {
		return nil, nil, err
	}
	closeAll := func() {
		for _, s := range sources {
			_ = s.Root.Close() // it was only read
		}
	}
	for _, folder := range all {
		root, err := d.tasks.dirs.OpenData(string(a.holder), folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		sources = append(sources, datacopy.Source{Name: folder, Root: root, Owner: owners.Name})
	}
	client.DataSent(d.core, cluster.AllocID(alloc), true)
	return sources, func() {
		closeAll()
		client.DataSent(d.core, cluster.AllocID(alloc), false)
	}, nil
}
