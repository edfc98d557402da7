package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	api "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/mounts"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

const (
	// destroyInterval is the time between two checks of what is left of a node that is being destroyed.
	destroyInterval = 20 * time.Millisecond
	// pluginsWait is how long Destroy waits for plugins if nothing else is left. It starts a plugin
	// to find the process that an earlier client has started.
	pluginsWait = 5 * time.Second
)

// Removal states what [Destroy] does not spare.
type Removal struct {
	// NoGrace: tasks get no kill timeout.
	NoGrace bool
	// KeptData: data of ended allocations that waits for a replacement is removed too. Otherwise Destroy refuses.
	KeptData bool
}

// Destroy stops all tasks and plugins of the client of a data directory, and removes the directory
// and the folder of the sockets. Of a folder at which a file system is mounted it removes the content. An error
// states what is left; a later call continues. Destroy does not contact the servers of the options.
func Destroy(ctx context.Context, o Options, r Removal) error {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	last := new(lastServers)
	o.Servers, o.keepEnded, o.alone = last, -1, true
	n, err := open(ctx, o, func(left *leftovers) error {
		last.cluster = cmp.Or(client.ClusterOf(left.allocs), "none")
		if r.NoGrace {
			hasten(left.allocs)
		}
		if r.KeptData {
			return nil
		}
		return noDataWaits(o.Config.DataDir, left.allocs)
	})
	if err != nil {
		return err
	}
	err = n.empty(ctx)
	if err == nil {
		err = n.killPlugins() // after an error, the next call still needs them
	}
	if err = errors.Join(err, n.Close()); err != nil {
		return fmt.Errorf("destroying the node in %s: %w", o.Config.DataDir, err)
	}
	if err := nothingMounted(o.Config.DataDir); err != nil {
		return err
	}
	sockets, err := socketsOf(o.Config)
	return errors.Join(err, removeWithTarget(sockets), removeWithTarget(o.Config.DataDir))
}

// maxWaiting is the largest number of allocations that an error of [noDataWaits] names.
const maxWaiting = 20

// noDataWaits returns an error that names the allocations whose only copy of their data is on the node, as far
// as the records of the client have it.
func noDataWaits(dir string, records []*client.Record) error {
	var waiting []string
	for _, r := range records {
		if out := r.DataOut; r.Ended && out != nil && out.State == cluster.DataKept && !out.Lost {
			waiting = append(waiting, string(r.Alloc.ID))
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	names := strings.Join(waiting[:min(maxWaiting, len(waiting))], ", ")
	if more := len(waiting) - maxWaiting; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("%s is not removed, because by its records it has the only copy of the data of ended allocations, for which a replacement waits: %s; "+
		"start the client until nodedrain alloc status shows that their data was copied, or remove the data with -force", dir, names)
}

// removeWithTarget removes a folder, or the content of one at which a file system is mounted. If it is a symbolic
// link, os.RemoveAll alone would leave its files.
func removeWithTarget(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	table, err := mounts.Read()
	if err != nil {
		return err
	}
	if !table.Has(real) {
		return errors.Join(os.RemoveAll(real), os.RemoveAll(dir))
	}
	entries, err := os.ReadDir(real)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(real, entry.Name())))
	}
	return err
}

// nothingMounted returns an error that names the mounts below a folder, but not one at the folder itself. Removal
// of the folder would remove the files of a mounted volume.
func nothingMounted(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	table, err := mounts.Read()
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(table.Below(real), func(point string) bool { return point == real })
	if len(left) > 0 {
		return fmt.Errorf("%s is not removed, because volumes are mounted below it; unmount them first: %s", dir, strings.Join(left, ", "))
	}
	return nil
}

// hasten removes all delays from the stops of allocations.
func hasten(records []*client.Record) {
	for _, r := range records {
		if r.Alloc.Job == nil {
			continue
		}
		for _, group := range r.Alloc.Job.TaskGroups {
			if group == nil {
				continue
			}
			group.ShutdownDelay = 0
			for _, task := range group.Tasks {
				if task != nil {
					task.KillTimeout, task.ShutdownDelay = 0, 0
				}
			}
		}
	}
}

// empty runs the client until the node has no allocation.
func (n *Node) empty(ctx context.Context) error {
	run, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- n.Run(run) }()
	tick := time.NewTicker(destroyInterval)
	defer tick.Stop()
	giveUp := time.Now().Add(pluginsWait)
	for {
		left, err := n.left()
		plugins := n.shell.drivers.allRun() && n.shell.devices.allRun() || time.Now().After(giveUp)
		if err != nil || len(left) == 0 && plugins {
			end()
			return errors.Join(err, <-ended)
		}
		select {
		case <-tick.C:
		case err := <-ended:
			if len(left) > 0 {
				err = errors.Join(err, fmt.Errorf("allocations are left: %s", strings.Join(left, ", ")))
			}
			return err
		}
	}
}

// left returns the allocations that have a record, a folder or a control group on the node.
func (n *Node) left() ([]string, error) {
	ids, err := n.shell.tasks.dirs.List()
	if err != nil || len(ids) > 0 {
		return ids, err
	}
	own, err := ownGroups(n.shell.tasks.groups, n.ID())
	if err != nil {
		return nil, err
	}
	for _, alloc := range slices.Sorted(maps.Keys(own)) {
		ids = append(ids, string(alloc))
	}
	if len(ids) > 0 {
		return ids, nil
	}
	all, _, err := n.shell.store.All()
	if err != nil {
		return nil, err
	}
	rows, err := n.shell.records.Select(all)
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	return ids, err
}

// killPlugins kills the plugins, which continue to run without a client.
func (n *Node) killPlugins() error {
	left, err := readRecords(n.shell.store)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), killWait*time.Duration(1+len(left.plugins)))
	defer cancel()
	var errs []error
	for _, r := range left.plugins {
		if id := r.Process.Process; !id.IsZero() {
			errs = append(errs, process.Kill(ctx, id))
		}
	}
	return errors.Join(errs...)
}

// lastServers are servers that place no allocation on the node, and accept each report.
type lastServers struct{ cluster string }

var _ VolumeServers = (*lastServers)(nil)

// Register implements [Servers].
func (*lastServers) Register(context.Context, *cluster.Node) (time.Duration, error) {
	return time.Minute, nil
}

// Heartbeat implements [Servers].
func (*lastServers) Heartbeat(context.Context) (time.Duration, error) { return time.Minute, nil }

// Changes implements [Servers].
func (s *lastServers) Changes(ctx context.Context, since api.Since) (client.Changes, error) {
	if since.Index > 0 {
		<-ctx.Done()
		return client.Changes{}, context.Cause(ctx)
	}
	return client.Changes{ClusterID: s.cluster, Index: math.MaxInt64, Complete: true}, nil
}

// Report implements [Servers].
func (*lastServers) Report(context.Context, []cluster.AllocReport) error { return nil }

// ClaimVolume implements [VolumeServers]. No more tasks start.
func (*lastServers) ClaimVolume(context.Context, cluster.ClaimKey) (storage.Claimed, error) {
	return storage.Claimed{}, errors.New("the node is being destroyed")
}

// ReleaseVolume implements [VolumeServers]. The servers free the claims of a node that is down.
func (*lastServers) ReleaseVolume(context.Context, cluster.ClaimKey) error { return nil }

// AcceptAnonymous implements [Servers].
func (*lastServers) AcceptAnonymous(context.Context) (bool, error) { return false, nil }

// OpenSession implements [Servers]. Such a node needs no session.
func (*lastServers) OpenSession(ctx context.Context) (*session.NodeEnd, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}
