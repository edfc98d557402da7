package node

import (
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
)

// orphans are the allocations with folders, control groups or a damaged record on the node, but without
// a readable record.
type orphans struct {
	records []*client.Record
	// damaged are the damaged records, by allocation. They are removed together with the folders.
	damaged map[cluster.AllocID]record.Damaged
}

// findOrphans creates a record for each allocation whose record is damaged, and for each one that has a
// folder or a control group without a record. The core then destroys their tasks: the folders show which
// control groups and log keepers exist.
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
		tasks = append(tasks, left.groups[alloc]...)
		slices.Sort(tasks)
		r := client.OrphanRecord(alloc, slices.Compact(tasks), bootID)
		if dirs.HasData(string(alloc)) {
			r.Disk = client.DiskFound
		}
		o.records = append(o.records, r)
		return nil
	}
	var unnamed []record.Damaged
	for _, d := range left.damaged {
		id, owns := left.allocTable.Owns(d)
		if owns && known[cluster.AllocID(id)] { // a later record has replaced it, and the allocation has kept its folders
			if err := left.store.Discard(d); err != nil {
				return nil, err
			}
			continue
		}
		logger.Error("a record is damaged: the client ends its task or the tasks of its allocation", "error", d.Err)
		switch {
		case owns && id != "":
			o.damaged[cluster.AllocID(id)] = d
			if err := add(cluster.AllocID(id)); err != nil {
				return nil, err
			}
		case owns: // the id is too long for the name of the file, but the folder and the groups of the allocation have it
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
	for alloc := range left.groups {
		ids = append(ids, string(alloc))
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for _, d := range unnamed {
		i := slices.IndexFunc(ids, func(id string) bool { return left.allocTable.Is(d, id) })
		if i >= 0 {
			o.damaged[cluster.AllocID(ids[i])] = d
			continue
		}
		// An allocation without folders and groups has started nothing.
		if err := left.store.Discard(d); err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		alloc := cluster.AllocID(id)
		if known[alloc] {
			continue
		}
		logger.Warn("a folder or a control group of an allocation has no record: the client ends its tasks", "alloc", alloc)
		if err := add(alloc); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// groupOwner is the owner of a task's control group. Clients of other nodes use the same parents, and so do
// other programs: only the owner proves that a group belongs to this node. No id contains a NUL.
func groupOwner(node cluster.NodeID, alloc cluster.AllocID, task string) string {
	return strings.Join([]string{string(node), string(alloc), task}, "\x00")
}

// taskOfGroup returns the node and the task of a control group. It reports false if no client has written
// the owner.
func taskOfGroup(g *cgroup.Group) (node cluster.NodeID, alloc cluster.AllocID, task string, proven bool, err error) {
	owner, err := g.Owner()
	parts := strings.SplitN(owner, "\x00", 3)
	if err != nil || len(parts) != 3 {
		return "", "", "", false, err
	}
	alloc, task = cluster.AllocID(parts[1]), parts[2]
	return cluster.NodeID(parts[0]), alloc, task, groupName(alloc, task) == g.Name(), nil
}

// ownGroups returns the tasks that have a control group of the node, by allocation.
func ownGroups(groups cgroup.Hierarchies, node cluster.NodeID) (map[cluster.AllocID][]string, error) {
	all, err := groups.List()
	if err != nil {
		return nil, err
	}
	own := make(map[cluster.AllocID][]string)
	for _, g := range all {
		owner, alloc, task, proven, err := taskOfGroup(g)
		if err != nil {
			return nil, err
		}
		if proven && owner == node {
			own[alloc] = append(own[alloc], task)
		}
	}
	return own, nil
}

// claimGroups writes the owner to the control groups of all tasks with records, because an older client has
// created groups without one.
func claimGroups(groups cgroup.Hierarchies, node cluster.NodeID, records []*client.Record) error {
	for _, r := range records {
		for i := range r.Tasks {
			task := r.Tasks[i].State.Name
			g, err := groups.Open(groupName(r.Alloc.ID, task))
			if errors.Is(err, cgroup.ErrNone) {
				return nil
			}
			if err == nil {
				err = g.SetOwner(groupOwner(node, r.Alloc.ID, task))
			}
			if err != nil && !errors.Is(err, cgroup.ErrNoOwner) {
				return err
			}
		}
	}
	return nil
}

// maxUnowned bounds the names in one line of the log.
const maxUnowned = 20

// logUnowned logs the groups of tasks that have processes and no owner. They may belong to any client of the
// machine, so the client neither kills nor counts them.
func logUnowned(groups cgroup.Hierarchies, logger *slog.Logger) error {
	all, err := groups.List()
	if err != nil {
		return err
	}
	var names []string
	for _, g := range all {
		if !strings.HasPrefix(g.Name(), "=") && !strings.Contains(g.Name(), ".") { // not the name of a task's group
			continue
		}
		_, _, _, proven, err := taskOfGroup(g)
		if err != nil || proven {
			continue
		}
		if lives, err := g.Populated(); err == nil && lives {
			names = append(names, g.Name())
		}
	}
	if len(names) > 0 {
		logger.Warn("control groups of tasks have processes and do not name their node: the client does not touch them, and drains do not count them; "+
			"an older client or another program has created them", "count", len(names), "groups", names[:min(len(names), maxUnowned)])
	}
	return nil
}
