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

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

// trash holds what is removed. No encoded id begins with a dot.
const trash = ".trash"

// Remove removes the folders of an allocation. It is no error if there are none. After an error, also after
// the end of the context, the next call continues.
//
// Remove deletes symbolic links and does not follow them. It does not delete what is mounted below
// the folder: the error names the mount point. It opens one folder at a time, however deep the tree
// is, and reads it in parts, however large it is.
func (f *Folders) Remove(ctx context.Context, alloc string) error {
	return f.removeTree(ctx, alloc, pathname.Encode(alloc))
}

// removeTree removes a tree that is, or is in, the folder of an allocation.
func (f *Folders) removeTree(ctx context.Context, alloc, name string) error {
	r := remover{ctx: ctx, root: f.root, bin: path.Join(trash, pathname.Encode(alloc))}
	err := f.root.MkdirAll(r.bin, 0o700)
	if err == nil {
		err = f.label(r.bin, alloc)
	}
	if err == nil {
		err = r.remove(name)
	}
	if err != nil {
		return fmt.Errorf("remove the folders of allocation %s: %w", alloc, err)
	}
	return nil
}

// remover removes one tree. It moves every folder of the tree to its bin and empties it there.
type remover struct {
	ctx  context.Context
	root *os.Root
	bin  string
	next int // the next free name in the bin
}

func (r *remover) remove(name string) error {
	if err := r.discard(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for {
		names, err := r.read(r.bin)
		if err != nil {
			return err
		}
		names = slices.DeleteFunc(names, func(e fs.DirEntry) bool { return e.Name() == idFile })
		if len(names) == 0 {
			if err := r.root.Remove(path.Join(r.bin, idFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return r.root.Remove(r.bin)
		}
		for _, entry := range names {
			if err := r.empty(path.Join(r.bin, entry.Name())); err != nil {
				return err
			}
		}
	}
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
				err = r.discard(name)
			} else {
				err = r.root.Remove(name)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
}

// discard moves a folder to the bin. A mount point cannot be moved.
func (r *remover) discard(name string) error {
	if os.Geteuid() != 0 { // The owner of a folder needs these rights to move it.
		if err := r.root.Chmod(name, 0o700); err != nil {
			return err
		}
	}
	for {
		err := r.root.Rename(name, path.Join(r.bin, strconv.Itoa(r.next)))
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		r.next++ // The bin has this name since an earlier call.
	}
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
