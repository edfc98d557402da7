package node

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/client/pathname"
	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// orphans are the allocations of which the node has something, and no record that can be read.
type orphans struct {
	records []*client.Record
	// damaged are the records that were set aside, by allocation. They go with the folders.
	damaged map[cluster.AllocID]record.Damaged
}

// findOrphans makes a record for each allocation whose record is damaged, and for each folder without
// one. The core destroys what they had: the folders say which control groups and log keepers these are.
func findOrphans(dirs *allocdir.Folders, left *leftovers, bootID string, logger *slog.Logger) (*orphans, error) {
	o := &orphans{damaged: make(map[cluster.AllocID]record.Damaged)}
	known := make(map[cluster.AllocID]bool, len(left.allocs))
	for _, r := range left.allocs {
		known[r.Alloc.ID] = true
	}
	add := func(alloc cluster.AllocID) error {
		if known[alloc] {
			return nil
		}
		known[alloc] = true
		tasks, err := tasksIn(dirs.Alloc(string(alloc)))
		if err != nil {
			return err
		}
		o.records = append(o.records, client.OrphanRecord(alloc, tasks, bootID))
		return nil
	}
	for _, d := range left.damaged {
		logger.Error("a record is damaged: what it was about is destroyed", "error", d.Err)
		id, owns := left.allocTable.Owns(d)
		switch {
		case owns && id != "":
			o.damaged[cluster.AllocID(id)] = d
			if err := add(cluster.AllocID(id)); err != nil {
				return nil, err
			}
		case !owns: // of a plugin: its process is found by its socket
			if err := left.store.Discard(d); err != nil {
				return nil, err
			}
		}
	}
	ids, err := dirs.List()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		alloc := cluster.AllocID(id)
		if known[alloc] {
			continue
		}
		logger.Warn("a folder of an allocation has no record: what it belongs to is destroyed", "alloc", alloc)
		if err := add(alloc); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// tasksIn returns the tasks that have folders in the folder of an allocation.
func tasksIn(folder string) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		name, err := pathname.Decode(e.Name())
		switch {
		case e.Name() == allocdir.TaskFolder("alloc"):
			names = append(names, "alloc")
		case err == nil && e.IsDir() && allocdir.TaskFolder(name) == e.Name():
			names = append(names, name)
		}
	}
	return names, nil
}
