package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/mounts"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

const (
	// volumesDir is the folder of all volumes, below the data directory.
	volumesDir = "volumes"
	// volumeRecords is the version of the content of volume records.
	volumeRecords = 1
	// volumeCallTimeout is the timeout of one call to a storage plugin. A call that takes longer is
	// retried.
	volumeCallTimeout = 2 * time.Minute
	// claimTimeout is the timeout of one request for a claim or its release. A controller may have
	// to attach the volume meanwhile.
	claimTimeout = 2 * time.Minute
	// holdersTimeout is the timeout of the search for processes that use a mount.
	holdersTimeout = 10 * time.Second
)

// VolumeServers are [Servers] with claims on volumes. With other servers the node mounts no
// volumes.
type VolumeServers interface {
	Servers
	// ClaimVolume returns what the node needs to mount a volume for an allocation with a claim. If
	// a controller must attach the volume, it returns after that. The error states what is missing.
	// An error of class [storage.Refused] is final.
	ClaimVolume(ctx context.Context, k cluster.ClaimKey) (storage.Claimed, error)
	// ReleaseVolume reports that a volume is unmounted for an allocation. It returns nil when the
	// servers no longer have a claim of the allocation, and a controller has detached the volume if
	// necessary.
	ReleaseVolume(ctx context.Context, k cluster.ClaimKey) error
}

// volumes executes the effects of the node's volumes.
type volumes struct {
	shell   *shell
	root    string
	records record.Table[*volume.Record]
	servers VolumeServers
	// search finds processes that keep mounts busy.
	search *mounts.Search
}

var _ volume.Shell = (*volumes)(nil)

func recordID(k cluster.VolumeKey) string {
	return strconv.Quote(string(k.Namespace)) + strconv.Quote(string(k.ID))
}

// write runs an effect that writes the record of a volume. A volume belongs to no job, so the records of
// volumes take turns as one job.
func (v *volumes) write(effect func() error, reply func(error)) {
	v.shell.write(cluster.JobKey{}, effect, reply)
}

// SaveVolume implements [volume.Shell].
func (v *volumes) SaveVolume(r *volume.Record, reply func(error)) {
	v.write(func() error { return v.records.Put(recordID(r.Volume), r) }, reply)
}

// DeleteVolume implements [volume.Shell].
func (v *volumes) DeleteVolume(k cluster.VolumeKey, reply func(error)) {
	v.write(func() error { return v.records.Delete(recordID(k)) }, reply)
}

// Claim implements [volume.Shell]. Like Release it waits until this client has registered: a release or a report
// of an earlier client that is still in flight is then either in the servers' answer or refused by them.
func (v *volumes) Claim(q storage.Request, reply func(storage.Claimed, error)) {
	run(v.shell, func() (storage.Claimed, error) {
		ctx, cancel := context.WithTimeout(v.shell.life, claimTimeout)
		defer cancel()
		if err := v.shell.contact.awaitRegistered(ctx); err != nil {
			return storage.Claimed{}, err
		}
		return v.servers.ClaimVolume(ctx, cluster.ClaimKey{Volume: q.Volume, Alloc: q.Alloc})
	}, reply)
}

// Release implements [volume.Shell].
func (v *volumes) Release(q storage.Request, reply func(error)) {
	v.shell.running.Go(func() {
		ctx, cancel := context.WithTimeout(v.shell.life, claimTimeout)
		defer cancel()
		err := v.shell.contact.awaitRegistered(ctx)
		if err == nil {
			err = v.servers.ReleaseVolume(ctx, cluster.ClaimKey{Volume: q.Volume, Alloc: q.Alloc})
		}
		reply(err)
	})
}

// Call implements [volume.Shell]. Each volume has one call in flight.
func (v *volumes) Call(c storage.Call, reply func(storage.Result)) {
	v.shell.running.Go(func() {
		ctx, cancel := context.WithTimeout(v.shell.life, volumeCallTimeout)
		defer cancel()
		path := storage.TargetPath(v.root, c.Request.Alloc, c.Volume, c.Request.Usage)
		if c.Verb == storage.Stage || c.Verb == storage.Unstage {
			path = storage.StagePath(v.root, c.Volume, c.Request.Usage)
		}
		err := v.call(ctx, c, path)
		reply(storage.Result{Err: err, Holders: v.holders(c, path, err)})
	})
}

func (v *volumes) call(ctx context.Context, c storage.Call, path string) error {
	p, err := v.shell.storage.plugin(c.Plugin, cluster.PluginType.Node)
	if err != nil {
		return err
	}
	if err := v.prepare(c, path); err != nil {
		return err
	}
	staging := storage.StagePath(p.volumes, c.Volume, c.Request.Usage)
	if err := p.plugin.Do(ctx, c, staging, storage.TargetPath(p.volumes, c.Request.Alloc, c.Volume, c.Request.Usage)); err != nil {
		return err
	}
	return v.check(c, path)
}

// prepare creates the folders that a plugin expects. It does not stat a path where something is
// mounted.
func (v *volumes) prepare(c storage.Call, path string) error {
	if c.Verb != storage.Stage && c.Verb != storage.Publish {
		return nil
	}
	table, err := mounts.Read()
	if err != nil || table.Has(path) {
		return err
	}
	if c.Verb == storage.Stage {
		return os.MkdirAll(path, 0o700)
	}
	// Users of tasks need access through the folder of the allocation. admit opens the folder of the
	// volume to them.
	folder := filepath.Dir(path)
	if err := os.MkdirAll(filepath.Dir(folder), 0o711); err != nil {
		return err
	}
	return os.MkdirAll(folder, 0o700)
}

// check compares the mount table with the answer of a plugin.
func (v *volumes) check(c storage.Call, path string) error {
	table, err := mounts.Read()
	if err != nil {
		return err
	}
	mounted := table.Has(path)
	switch c.Verb {
	case storage.Stage: // a plugin may stage without a mount
	case storage.Publish:
		if !mounted && c.Request.Usage.Attachment == cluster.AttachFileSystem {
			return fmt.Errorf("the storage plugin reports that the volume is published, but nothing is mounted at %s", path)
		}
	case storage.Unpublish, storage.Unstage:
		if mounted {
			return fmt.Errorf("the storage plugin reports that %s has succeeded, but the volume is still mounted at %s", c.Verb, path)
		}
		v.removeFolders(path)
	}
	return nil
}

// removeFolders removes the folder of an unmounted volume, and the empty folders above it.
func (v *volumes) removeFolders(path string) {
	for ; path != v.root && path != "/" && path != "."; path = filepath.Dir(path) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return // other volumes use it
		}
	}
}

// holders finds the processes that use a mount that could not be undone.
func (v *volumes) holders(c storage.Call, path string, err error) []storage.Holder {
	if err == nil || c.Verb == storage.Stage || c.Verb == storage.Publish {
		return nil
	}
	ctx, cancel := context.WithTimeout(v.shell.life, holdersTimeout)
	defer cancel()
	var found []storage.Holder
	for _, h := range v.search.Holders(ctx, path) {
		found = append(found, storage.Holder{PID: h.PID, Command: h.Command})
	}
	return found
}

// unknownMounts returns the mounts below the folder of all volumes that no record names.
func unknownMounts(table mounts.Table, root string, records []*volume.Record) []string {
	named := make(map[string]bool)
	for _, r := range records {
		for _, s := range r.Stages {
			named[storage.StagePath(root, r.Volume, s.Usage)] = true
		}
		for _, f := range r.Refs {
			named[storage.TargetPath(root, f.Alloc, r.Volume, f.Usage)] = true
		}
	}
	return slices.DeleteFunc(table.Below(root), func(point string) bool { return named[point] })
}

// volumeOptions returns the core's options for the volumes of the node, or nil if the servers have
// no claims.
func volumeOptions(s *shell, servers Servers, dataDir string, left *leftovers) (*volume.Options, error) {
	claims, is := servers.(VolumeServers)
	if !is {
		return nil, nil
	}
	// The kernel's table has no symbolic links.
	real, err := filepath.EvalSymlinks(dataDir)
	if err != nil {
		return nil, err
	}
	table, err := mounts.Read()
	if err != nil {
		return nil, err
	}
	v := &volumes{shell: s, root: filepath.Join(real, volumesDir), records: left.volumeTable, servers: claims, search: mounts.NewSearch()}
	if err := os.MkdirAll(v.root, 0o711); err != nil {
		return nil, err
	}
	s.tasks.volumes, s.storage.volumes = v.root, v.root
	if err := restrictVolumes(v.root, left.allocs, s.tasks.admit); err != nil {
		return nil, fmt.Errorf("access to volumes: %w", err)
	}
	for _, point := range unknownMounts(table, v.root, left.volumes) {
		s.logger.Error("no record of a volume names a mount; unmount it by hand if no allocation uses it", "path", point)
	}
	return &volume.Options{Shell: v, Root: v.root, Records: left.volumes, Mounted: table.Below(v.root)}, nil
}
