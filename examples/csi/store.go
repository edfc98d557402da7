package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/internal/private"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

// store is the state that all processes of the plugin on a machine share: the folders below the
// root.
//
//	lock                          held while a call changes something
//	volumes/VOLUME/volume.json    a volume
//	volumes/VOLUME/data/          its content, which the nodes mount
//	volumes/VOLUME/nodes/NODE     a publication of a controller to a node
//	nodes/NODE/volumes/VOLUME     the mounts that a node was recorded for
//	unfinished/                   volumes that are being made or deleted
//
// The mount table states what is mounted, but not for which node, from which staging path and in
// which mode. nodes/NODE/volumes/VOLUME contains this, and is written before the mount. A mount
// counts only if both the file and the mount table contain it.
type store struct{ root string }

// volume is the content of volume.json.
type volume struct {
	ID string `json:"id"`
	// Capacity is in bytes. It is not enforced. 0 means that no capacity was requested.
	Capacity int64 `json:"capacity,omitempty"`
}

// publication is the content of a controller's file.
type publication struct {
	Node string `json:"node"`
	Mode string `json:"mode"`
}

// nodeMounts are the requested mounts of one volume on one node.
type nodeMounts struct {
	Node   string        `json:"node"`
	Mounts []mountRecord `json:"mounts"`
}

// mountRecord is one requested mount.
type mountRecord struct {
	Path string `json:"path"`
	// Staging is the staging path that is published at Path. It is empty if Path is a staging path.
	Staging  string `json:"staging,omitempty"`
	Mode     string `json:"mode"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// openStore creates the folders. The root may exist. It is refused if other users can change it, and
// gets the mode 0700.
func openStore(root string) (*store, error) {
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("the root %q is no absolute path", root)
	}
	if _, err := private.Limit(root, 0o700, "volumes", "nodes", "unfinished"); err != nil {
		return nil, fmt.Errorf("make the root: %w", err)
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, fmt.Errorf("find the root: %w", err)
	}
	s := &store{root: root}
	for _, folder := range []string{"volumes", "nodes", "unfinished"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o700); err != nil {
			return nil, fmt.Errorf("make the root: %w", err)
		}
	}
	return s, nil
}

// locked runs a function under a lock, so that no other process and no other call runs one at the
// same time.
func (s *store) locked(f func() error) error {
	file, err := os.OpenFile(filepath.Join(s.root, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock the root: %w", err)
	}
	defer file.Close() // this also unlocks
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("lock the root: %w", err)
	}
	return f()
}

func (s *store) volumeFolder(id string) string {
	return filepath.Join(s.root, "volumes", pathname.Encode(id))
}

// data returns the folder that the nodes mount.
func (s *store) data(id string) string { return filepath.Join(s.volumeFolder(id), "data") }

func (s *store) publicationFile(volume, node string) string {
	return filepath.Join(s.volumeFolder(volume), "nodes", pathname.Encode(node))
}

func (s *store) nodeFolder(node string) string {
	return filepath.Join(s.root, "nodes", pathname.Encode(node))
}

func (s *store) mountsFile(node, volume string) string {
	return filepath.Join(s.nodeFolder(node), "volumes", pathname.Encode(volume))
}

// addNode registers a node for controllers. It returns an error if this process may not mount.
func (s *store) addNode(node string) error {
	if err := checkRights(filepath.Join(s.root, "unfinished")); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.nodeFolder(node), "volumes"), 0o700); err != nil {
		return fmt.Errorf("add the node %s: %w", node, err)
	}
	return nil
}

// hasNode reports whether a program with this node id has ever run.
func (s *store) hasNode(node string) (bool, error) { return exists(s.nodeFolder(node)) }

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// volume returns a volume. The boolean is false if there is none with this id.
func (s *store) volume(id string) (volume, bool, error) {
	var v volume
	found, err := readJSON(filepath.Join(s.volumeFolder(id), "volume.json"), &v)
	return v, found, err
}

// mustHave returns an error with the code NotFound if there is no volume with this id.
func (s *store) mustHave(id string) error {
	_, found, err := s.volume(id)
	if err == nil && !found {
		err = noVolume(id)
	}
	return err
}

// create creates a new volume. Afterwards the volume exists completely or not at all.
func (s *store) create(v volume) error {
	half := filepath.Join(s.root, "unfinished", pathname.Encode(v.ID))
	if err := os.RemoveAll(half); err != nil {
		return fmt.Errorf("create the volume %s: %w", v.ID, err)
	}
	data := filepath.Join(half, "data")
	err := errors.Join(os.MkdirAll(data, 0o700), os.Mkdir(filepath.Join(half, "nodes"), 0o700))
	if err == nil {
		// Tasks of every user may use their volumes. Other users have no access below the root.
		err = os.Chmod(data, 0o777)
	}
	if err == nil {
		err = writeJSON(filepath.Join(half, "volume.json"), v)
	}
	if err == nil {
		err = os.Rename(half, s.volumeFolder(v.ID))
	}
	if err == nil {
		err = syncFolder(filepath.Join(s.root, "volumes"))
	}
	if err != nil {
		return fmt.Errorf("create the volume %s: %w", v.ID, err)
	}
	return nil
}

// remove deletes a volume with its content. A missing volume is not an error.
func (s *store) remove(id string) error {
	half := filepath.Join(s.root, "unfinished", pathname.Encode(id))
	err := os.RemoveAll(half)
	if err == nil {
		err = os.Rename(s.volumeFolder(id), half)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if err == nil {
		err = errors.Join(syncFolder(filepath.Join(s.root, "volumes")), os.RemoveAll(half))
	}
	if err != nil {
		return fmt.Errorf("delete the volume %s: %w", id, err)
	}
	return nil
}

// publications returns the nodes to which a volume is published, in the order of their files.
func (s *store) publications(volume string) ([]publication, error) {
	return readFolder[publication](filepath.Join(s.volumeFolder(volume), "nodes"))
}

func (s *store) publish(volume string, p publication) error {
	return writeJSON(s.publicationFile(volume, p.Node), p)
}

func (s *store) unpublish(volume, node string) error {
	return removeFile(s.publicationFile(volume, node))
}

// recorded returns the requested mounts of a volume on a node.
func (s *store) recorded(node, volume string) ([]mountRecord, error) {
	var m nodeMounts
	_, err := readJSON(s.mountsFile(node, volume), &m)
	return m.Mounts, err
}

// record adds a mount, or replaces the mount with the same path.
func (s *store) record(node, volume string, m mountRecord) error {
	mounts, err := s.recorded(node, volume)
	if err != nil {
		return err
	}
	mounts = append(without(mounts, m.Path), m)
	return writeJSON(s.mountsFile(node, volume), nodeMounts{Node: node, Mounts: mounts})
}

// forget removes the mount with this path, if it exists.
func (s *store) forget(node, volume, path string) error {
	before, err := s.recorded(node, volume)
	if err != nil {
		return err
	}
	switch mounts := without(before, path); {
	case len(mounts) == 0:
		return removeFile(s.mountsFile(node, volume))
	case len(mounts) < len(before):
		return writeJSON(s.mountsFile(node, volume), nodeMounts{Node: node, Mounts: mounts})
	}
	return nil
}

func without(mounts []mountRecord, path string) []mountRecord {
	return slices.DeleteFunc(slices.Clone(mounts), func(m mountRecord) bool { return m.Path == path })
}

// onNodes returns the existing mounts of a volume, by the ids of the nodes.
func (s *store) onNodes(volume string, table mountTable) (map[string][]mountRecord, error) {
	nodes, err := os.ReadDir(filepath.Join(s.root, "nodes"))
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	folder := table.folder(s.data(volume))
	found := map[string][]mountRecord{}
	for _, node := range nodes {
		var m nodeMounts
		file := filepath.Join(s.root, "nodes", node.Name(), "volumes", pathname.Encode(volume))
		if _, err := readJSON(file, &m); err != nil {
			return nil, err
		}
		for _, recorded := range m.Mounts {
			if at, ok := table.at(recorded.Path); ok && same(at, folder) {
				found[m.Node] = append(found[m.Node], recorded)
			}
		}
	}
	return found, nil
}

// standing returns the state of a volume on all nodes.
func (s *store) standing(volume string, table mountTable) (standing, error) {
	publications, err := s.publications(volume)
	if err != nil {
		return nil, err
	}
	now := standing{}
	for _, p := range publications {
		now[p.Node] = onNode{attached: true}
	}
	mounted, err := s.onNodes(volume, table)
	if err != nil {
		return nil, err
	}
	for node, mounts := range mounted {
		n := now[node]
		for _, m := range mounts {
			if m.Staging == "" {
				n.staged = append(n.staged, m.Path)
			} else {
				n.published = append(n.published, target{path: m.Path, staging: m.Staging})
			}
		}
		now[node] = n
	}
	return now, nil
}

// readJSON reads a file. It returns false if there is none.
func readJSON(path string, into any) (bool, error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, fmt.Errorf("%s is damaged: %w", path, err)
	}
	return true, nil
}

// readFolder reads the files of a folder. A missing folder counts as empty.
func readFolder[T any](folder string) ([]T, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []T
	for _, entry := range entries {
		var one T
		if strings.HasSuffix(entry.Name(), temporary) {
			continue
		}
		if _, err := readJSON(filepath.Join(folder, entry.Name()), &one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// temporary is the suffix of a file that is being written. No other name has this suffix.
const temporary = "~new"

// writeJSON replaces a file. It is durable when writeJSON returns.
func writeJSON(path string, content any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path+temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
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
	if err := os.Rename(path+temporary, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// removeFile removes a file durably. The file need not exist.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := syncFolder(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
