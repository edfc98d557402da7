package allocdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"syscall"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

// trash holds what is removed. No encoded id begins with a dot.
const trash = ".trash"

// Remove removes the folders of an allocation. It is no error if there are none. After an error, also after
// the end of the context, the next call continues.
//
// Remove deletes symbolic links and does not follow them. It does not delete what is mounted below
// the folder: the error names the mount point. It opens one folder at a time, however deep the tree
// is, and reads it in parts, however large it is. It makes no file and no folder, so it also frees a full disk.
func (f *Folders) Remove(ctx context.Context, alloc string) error {
	name := pathname.Encode(alloc)
	r := remover{ctx: ctx, root: f.root, bin: path.Join(trash, name)}
	err := f.makeTrash()
	if err == nil {
		err = r.take(name)
	}
	if err == nil {
		err = r.remove()
	}
	if err != nil {
		return fmt.Errorf("remove the folders of allocation %s: %w", alloc, err)
	}
	return nil
}

// makeTrash makes the folder for what is removed.
func (f *Folders) makeTrash() error {
	if err := f.root.Mkdir(trash, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// remover removes one tree, the bin. It moves every folder of the tree to the top of the bin and empties it there.
type remover struct {
	ctx  context.Context
	root *os.Root
	bin  string
	next int // the number of the next free name in the bin
}

// take makes a tree the bin. If an earlier call has left the bin, the tree moves into it.
func (r *remover) take(name string) error {
	err := r.own(name)
	if err == nil {
		err = r.root.Rename(name, r.bin)
	}
	if errors.Is(err, fs.ErrExist) {
		_, err = r.discard(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (r *remover) remove() error {
	for {
		entries, err := r.read(r.bin)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == idFile && !e.IsDir() })
		if len(entries) == 0 {
			if err := r.root.Remove(path.Join(r.bin, idFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return r.root.Remove(r.bin)
		}
		for _, entry := range entries {
			if err := r.removeEntry(entry); err != nil {
				return err
			}
		}
	}
}

// removeEntry removes an entry of the bin. A folder moves first, because a mount point cannot move.
func (r *remover) removeEntry(entry fs.DirEntry) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	name := path.Join(r.bin, entry.Name())
	if !entry.IsDir() {
		return r.root.Remove(name)
	}
	dir, err := r.discard(name)
	if err != nil {
		return err
	}
	return r.empty(dir)
}

// empty removes a folder of the bin. The folders in it go to the bin.
func (r *remover) empty(dir string) error {
	// A folder without these rights cannot be emptied by an owner that is not root.
	if err := r.root.Chmod(dir, 0o700); err != nil {
		return err
	}
	for {
		entries, err := r.read(dir)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return r.root.Remove(dir)
		}
		for _, entry := range entries {
			if err := r.ctx.Err(); err != nil {
				return context.Cause(r.ctx)
			}
			name := path.Join(dir, entry.Name())
			if entry.IsDir() {
				_, err = r.discard(name)
			} else {
				err = r.root.Remove(name)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
}

// discard moves a folder to the top of the bin, to a name that no encoded id has. A mount point cannot be moved.
func (r *remover) discard(name string) (moved string, err error) {
	if err := r.own(name); err != nil {
		return "", err
	}
	for ; ; r.next++ {
		moved = path.Join(r.bin, "."+strconv.Itoa(r.next))
		if moved == name {
			continue
		}
		err := r.root.Rename(name, moved)
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOTDIR) {
			return moved, err
		}
	}
}

// own takes the rights to move a folder, which root has.
func (r *remover) own(name string) error {
	if os.Geteuid() == 0 {
		return nil
	}
	return r.root.Chmod(name, 0o700)
}

// read returns some entries of a folder, and none if it is empty.
func (r *remover) read(dir string) ([]fs.DirEntry, error) {
	open, err := r.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer open.Close()
	entries, err := open.ReadDir(256)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	return entries, err
}
