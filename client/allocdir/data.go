package allocdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

// incoming is the folder of an allocation for data that arrives. Only the client enters it. No encoded id begins
// with a dot.
const incoming = ".incoming"

// sharedData is the folder of the data that all tasks share.
const sharedData = shared + "/data"

// DataFolders returns the folders of an allocation whose content moves to its replacement. They are relative to the
// folder of the allocation.
func DataFolders(tasks []Task) []string {
	folders := []string{sharedData}
	for _, t := range tasks {
		folders = append(folders, path.Join(TaskFolder(t.Name), "local"))
	}
	return folders
}

// isData reports whether a path is one that [DataFolders] can return.
func isData(folder string) bool {
	task, last := path.Split(folder)
	return folder == sharedData || last == "local" && len(task) > 1 && task[0] != '.' && path.Base(task)+"/" == task && path.Base(task) != shared
}

// OpenData opens a folder of [DataFolders]. It is an [fs.ErrNotExist] if there is no such folder.
func (f *Folders) OpenData(alloc, folder string) (*os.Root, error) {
	if !isData(folder) {
		return nil, fmt.Errorf("%q is no folder of data", folder)
	}
	above, err := enter(f.root, pathname.Encode(alloc))
	if err != nil {
		return nil, err
	}
	middle, err := enter(above, path.Dir(folder))
	if err = errors.Join(err, above.Close()); err != nil {
		return nil, err
	}
	last, err := enter(middle, path.Base(folder))
	return last, errors.Join(err, middle.Close())
}

// HasData reports whether the folder of the data that all tasks share exists.
func (f *Folders) HasData(alloc string) bool {
	dir, err := f.OpenData(alloc, sharedData)
	if err == nil {
		_ = dir.Close() // nothing was read
	}
	return err == nil
}

// MakeIncoming makes an empty folder for the data that arrives for an allocation, and removes an earlier one. No
// task and no API caller sees it. [Folders.Remove] removes it too.
func (f *Folders) MakeIncoming(ctx context.Context, alloc string) (*os.Root, error) {
	if err := f.RemoveIncoming(ctx, alloc); err != nil {
		return nil, err
	}
	at := path.Join(pathname.Encode(alloc), incoming)
	if err := f.root.Mkdir(at, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for the data of allocation %s: %w", alloc, err)
	}
	return f.root.OpenRoot(at)
}

// RemoveIncoming removes the data that has arrived for an allocation. It is no error if there is none.
func (f *Folders) RemoveIncoming(ctx context.Context, alloc string) error {
	at := path.Join(pathname.Encode(alloc), incoming)
	if _, err := f.root.Lstat(at); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := (&remover{ctx: ctx, root: f.root, bin: at}).remove(); err != nil {
		return fmt.Errorf("remove the incoming data of allocation %s: %w", alloc, err)
	}
	return nil
}

// PlaceIncoming moves the data that has arrived over the folders of an allocation, which are empty. They have the
// same owners and modes as before. It can be repeated.
func (f *Folders) PlaceIncoming(ctx context.Context, alloc string, folders []string) error {
	name := pathname.Encode(alloc)
	if err := f.moveAll(path.Join(name, incoming), name, folders); err != nil {
		return fmt.Errorf("place the data of allocation %s: %w", alloc, err)
	}
	return f.RemoveIncoming(ctx, alloc)
}

// MoveData moves the data of one allocation over the folders of another one, which are empty. They have the same
// owners and modes as before. It can be repeated.
func (f *Folders) MoveData(from, to string, folders []string) error {
	if err := f.moveAll(pathname.Encode(from), pathname.Encode(to), folders); err != nil {
		return fmt.Errorf("move the data of allocation %s to allocation %s: %w", from, to, err)
	}
	return nil
}

// moveAll moves folders, and makes this durable. One that does not exist was moved before, or never existed.
func (f *Folders) moveAll(from, to string, folders []string) error {
	for _, folder := range folders {
		if err := f.move(path.Join(from, folder), path.Join(to, folder)); err != nil {
			return err
		}
	}
	return nil
}

func (f *Folders) move(from, to string) error {
	info, err := f.root.Lstat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", from)
	}
	switch has, err := f.root.Lstat(to); {
	case errors.Is(err, fs.ErrNotExist): // an earlier call has removed it, and has set the owner and the mode
	case err != nil:
		return err
	default:
		if err := f.make(folder{from, ownerOf(has), has.Mode() & (fs.ModePerm | fs.ModeSticky)}); err != nil {
			return err
		}
		if err := f.root.Remove(to); err != nil {
			return err
		}
	}
	if err := f.root.Rename(from, to); err != nil {
		return err
	}
	return errors.Join(f.sync(path.Dir(to)), f.sync(path.Dir(from)))
}

// sync makes the names in a folder durable.
func (f *Folders) sync(name string) error {
	dir, err := f.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// DataOwners maps the users of an allocation's tasks to names, which mean the same on other nodes.
type DataOwners struct {
	// names are the names by number, and users the users by name. The client's user has no name.
	names map[uint32]string
	users map[string]owner
	// folders are the owners of the folders of data.
	folders map[string]owner
}

// OwnersOf returns the users of tasks. A user that does not exist is an error.
func OwnersOf(tasks []Task) (*DataOwners, error) {
	d := &DataOwners{names: map[uint32]string{}, users: map[string]owner{}, folders: map[string]owner{}}
	common := self()
	for i, t := range tasks {
		who, err := lookup(t.User)
		if err != nil {
			return nil, fmt.Errorf("task %s: %w", t.Name, err)
		}
		d.folders[path.Join(TaskFolder(t.Name), "local")] = who
		if t.User != "" {
			d.users[t.User], d.names[uint32(who.uid)] = who, t.User
		}
		switch {
		case i == 0:
			common = who
		case common != who:
			common = self()
		}
	}
	d.folders[sharedData] = common
	return d, nil
}

// Name returns the name of the tasks' user with a number, or an empty string.
func (d *DataOwners) Name(uid uint32) string { return d.names[uid] }

// Of returns the owner of an entry in a folder: the tasks' user with the name, or the owner of the folder.
func (d *DataOwners) Of(folder, user string) (uid, gid int) {
	who, known := d.users[user]
	if !known {
		who = d.folders[folder]
	}
	return who.uid, who.gid
}
