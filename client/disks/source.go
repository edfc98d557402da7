package disks

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

// Source opens the data that ended allocations keep. All fields are required.
type Source struct {
	Core    *client.Core
	Folders *allocdir.Folders
	// Tasks is that of [Options].
	Tasks func(*cluster.Allocation) []allocdir.Task
	// Kept returns an ended allocation that keeps its data, and the allocation in whose folders the data
	// is, or why there is none.
	Kept func(alloc string) (kept *cluster.Allocation, holder cluster.AllocID, err error)
}

var _ nodeapi.Data = (*Source)(nil)

// Open implements [nodeapi.Data].
func (d *Source) Open(alloc string, folders []string) (sources []datacopy.Source, end func(), err error) {
	kept, holder, err := d.Kept(alloc)
	if err != nil {
		return nil, nil, err
	}
	tasks := d.Tasks(kept)
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
		root, err := d.Folders.OpenData(string(holder), folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		sources = append(sources, datacopy.Source{Name: folder, Root: root, Owner: owners.Name})
	}
	if len(all) > 0 && len(sources) == 0 {
		return nil, nil, fmt.Errorf("%w: the folders of allocation %q, which keeps its data, are gone from the node", nodeapi.ErrUnknown, holder)
	}
	client.DataSent(d.Core, cluster.AllocID(alloc), true)
	return sources, func() {
		closeAll()
		client.DataSent(d.Core, cluster.AllocID(alloc), false)
	}, nil
}
