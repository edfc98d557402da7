package node

import (
	"log/slog"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// orphans are the allocations with folders or a damaged record on the node, but without a readable
// record.
type orphans struct {
	records []*client.Record
	// damaged are the damaged records, by allocation. They are removed together with the folders.
	damaged map[cluster.AllocID]record.Damaged
}

// findOrphans creates a record for each allocation whose record is damaged, and for each folder
// without a record. The core then destroys their tasks: the folders show which control groups and
// log keepers exist.
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
		tasks, err := dirs.Tasks(string(alloc))
		if err != nil {
			return err
		}
		o.records = append(o.records, client.OrphanRecord(alloc, tasks, bootID))
		return nil
	}
	var unnamed []record.Damaged
	for _, d := range left.damaged {
		logger.Error("a record is damaged: the client destroys its task or allocation", "error", d.Err)
		id, owns := left.allocTable.Owns(d)
		switch {
		case owns && id != "":
			o.damaged[cluster.AllocID(id)] = d
			if err := add(cluster.AllocID(id)); err != nil {
				return nil, err
			}
		case owns: // the id is too long for the name of the file, but the folder of the allocation contains it
			unnamed = append(unnamed, d)
		default:
			// The record of a plugin is not needed, because its socket shows its process. The
			// record of a volume is not needed, because the record of the allocation names it.
			if err := left.store.Discard(d); err != nil {
				return nil, err
			}
		}
	}
	ids, err := dirs.List()
	if err != nil {
		return nil, err
	}
	for _, d := range unnamed {
		i := slices.IndexFunc(ids, func(id string) bool { return left.allocTable.Is(d, id) })
		if i >= 0 {
			o.damaged[cluster.AllocID(ids[i])] = d
			continue
		}
		// An allocation without folders has started nothing.
		if err := left.store.Discard(d); err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		alloc := cluster.AllocID(id)
		if known[alloc] {
			continue
		}
		logger.Warn("a folder of an allocation has no record: the client destroys the allocation", "alloc", alloc)
		if err := add(alloc); err != nil {
			return nil, err
		}
	}
	return o, nil
}
