package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/internal/private"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

// store is what all processes of the plugin on a machine share, below the root.
//
//	lock            held while a call works
//	state.json      the state
//	volumes/VOLUME  the content of a volume, which the nodes mount
//	                (VOLUME~deleted while it is deleted)
type store struct{ root string }

// state is the content of state.json, and the mount table.
//
// The mount table states what is mounted, but not for which node, from which staging path and in
// which mode. The state contains this, and is written before the mount. A mount counts only if both
// the state and the mount table contain it.
type state struct {
	// Nodes are the ids of the nodes whose program has run.
	Nodes []string `json:"nodes"`
	// Volumes are the volumes by their ids.
	Volumes map[string]volume `json:"volumes"`

	store *store
	table mountTable
}

type volume struct {
	// Capacity is in bytes. It is not enforced. 0 means that no capacity was requested.
	Capacity int64 `json:"capacity,omitempty"`
	// Published are the access modes of the nodes to which a controller has published the volume.
	Published map[string]accessMode `json:"published,omitempty"`
	// Mounts are the requested mounts of all nodes, in the order of their requests.
	Mounts []mountRecord `json:"mounts,omitempty"`
}

// mountRecord is a requested mount.
type mountRecord struct {
	Node string `json:"node"`
	Path string `json:"path"`
	// Staging is the staging path that is published at Path. It is empty if Path is a staging path.
	Staging  string     `json:"staging,omitempty"`
	Mode     accessMode `json:"mode"`
	ReadOnly bool       `json:"read_only,omitempty"`
}

// openStore creates the folders. The root may exist. It is refused if other users can change it, and
// gets the mode 0700. A root of the older layout is refused unchanged.
func openStore(root string) (*store, error) {
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("the root %q is no absolute path", root)
	}
	// The older layout had the content of a volume in volumes/VOLUME/data, and no state.json.
	if _, err := os.Lstat(filepath.Join(root, "nodes")); err == nil {
		return nil, fmt.Errorf("the root %[1]s has the layout of an older csi, which this one cannot use: stop the tasks that use its volumes, "+
			"create the volumes in another root, and move the content of each %[1]s/volumes/VOLUME/data to volumes/VOLUME there", root)
	}
	if _, err := private.Limit(root, 0o700, "volumes"); err != nil {
		return nil, fmt.Errorf("make the root: %w", err)
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, fmt.Errorf("find the root: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(root, "volumes"), 0o700); err != nil {
		return nil, fmt.Errorf("make the root: %w", err)
	}
	return &store{root: root}, nil
}

// locked runs a function with the state. No other process and no other call runs one at the same
// time. The function saves what it has changed.
func (s *store) locked(f func(*state) error) error {
	lock, err := os.OpenFile(filepath.Join(s.root, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock the root: %w", err)
	}
	defer lock.Close() // this also unlocks
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		return fmt.Errorf("lock the root: %w", err)
	}
	now := &state{Volumes: map[string]volume{}, store: s}
	text, err := os.ReadFile(s.file())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, now); err != nil {
			return fmt.Errorf("%s is damaged: %w", s.file(), err)
		}
	}
	if now.table, err = readMounts(); err != nil {
		return err
	}
	return f(now)
}

func (s *store) file() string { return filepath.Join(s.root, "state.json") }

// data returns the folder of a volume that the nodes mount.
func (s *store) data(id string) string { return filepath.Join(s.root, "volumes", pathname.Encode(id)) }

// save makes the state durable.
func (s *state) save() error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(s.store.file()+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), s.store.file()); err != nil {
		return err
	}
	return syncFolder(s.store.root)
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// addNode registers a node for controllers.
func (s *state) addNode(node string) error {
	if slices.Contains(s.Nodes, node) {
		return nil
	}
	s.Nodes = append(s.Nodes, node)
	return s.save()
}

// volume returns a volume, or an error with the code NotFound.
func (s *state) volume(id string) (volume, error) {
	v, found := s.Volumes[id]
	if !found {
		return v, noVolume(id)
	}
	return v, nil
}

// put saves a volume.
func (s *state) put(id string, v volume) error {
	s.Volumes[id] = v
	return s.save()
}

// create creates a new volume. An empty folder may be left from a creation that did not end. A folder
// with files is an error: they are not of this volume, and their owner may still need them.
func (s *state) create(id string, v volume) error {
	data := s.store.data(id)
	err := os.Mkdir(data, 0o700)
	if errors.Is(err, fs.ErrExist) {
		if err = unix.Rmdir(data); err != nil {
			return fmt.Errorf("create the volume %s: %s exists, and %s does not name it: move it away: %w", id, data, s.store.file(), err)
		}
		err = os.Mkdir(data, 0o700)
	}
	if err == nil {
		// Tasks of every user may use their volumes. Other users have no access below the root.
		err = errors.Join(os.Chmod(data, 0o777), syncFolder(filepath.Dir(data)))
	}
	if err == nil {
		err = s.put(id, v)
	}
	if err != nil {
		return fmt.Errorf("create the volume %s: %w", id, err)
	}
	return nil
}

// remove deletes a volume with its content. A missing volume is not an error. The folder is renamed
// before the state changes, so that a death leaves no folder that the state does not name.
func (s *state) remove(id string) error {
	data := s.store.data(id)
	gone := data + deleted
	err := os.RemoveAll(gone) // of a deletion that did not end
	if _, found := s.Volumes[id]; err == nil && found {
		err = os.Rename(data, gone)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			delete(s.Volumes, id)
			err = errors.Join(syncFolder(filepath.Dir(data)), s.save(), os.RemoveAll(gone))
		}
	}
	if err != nil {
		return fmt.Errorf("delete the volume %s: %w", id, err)
	}
	return nil
}

// deleted ends the name of the folder of a deleted volume. No other name contains it.
const deleted = "~deleted"

// folder returns the mount that a bind mount of a volume's folder has.
func (s *state) folder(id string) mountPoint { return s.table.folder(s.store.data(id)) }

// existing returns the mounts of a volume that the mount table contains.
func (s *state) existing(id string) []mountRecord {
	folder := s.folder(id)
	return slices.DeleteFunc(slices.Clone(s.Volumes[id].Mounts), func(m mountRecord) bool {
		at, mounted := s.table.at(m.Path)
		return !mounted || !same(at, folder)
	})
}

// record saves a mount before it is made.
func (s *state) record(id string, m mountRecord) error {
	v := s.Volumes[id]
	v.Mounts = append(v.without(m.Node, m.Path), m)
	return s.put(id, v)
}

// without returns the mounts of the volume except the one of a node at a path.
func (v volume) without(node, path string) []mountRecord {
	return slices.DeleteFunc(slices.Clone(v.Mounts), func(m mountRecord) bool { return m.Node == node && m.Path == path })
}

// recorded returns the mount of a node at a path.
func (v volume) recorded(node, path string) (mountRecord, bool) {
	for _, m := range v.Mounts {
		if m.Node == node && m.Path == path {
			return m, true
		}
	}
	return mountRecord{}, false
}
