package allocdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

// idFile holds the id of a folder whose name has only its hash. No encoded id begins with a dot.
const idFile = ".id"

// maxID bounds what is read of an id. Ids are shorter.
const maxID = 64 << 10

// label writes the id into its folder, if the name of the folder does not contain it. The write is not
// synced: after a power failure no process of the allocation is left to be found.
func (f *Folders) label(folder, id string) error {
	if _, err := pathname.Decode(path.Base(folder)); !errors.Is(err, pathname.ErrHashed) {
		return nil
	}
	file, err := f.root.OpenFile(path.Join(folder, idFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(id)
	return errors.Join(err, file.Close())
}

// idOf returns the id of a folder. It reports false for a folder that is not of an id, and for one of a
// long id that was not written.
func (f *Folders) idOf(folder string) (string, bool) {
	name := path.Base(folder)
	id, err := pathname.Decode(name)
	if !errors.Is(err, pathname.ErrHashed) {
		return id, err == nil
	}
	file, err := f.root.Open(path.Join(folder, idFile))
	if err != nil {
		return "", false
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxID))
	return string(content), err == nil && pathname.Encode(string(content)) == name
}

// List returns the ids of the allocations that have folders, or that were not removed to the end. It
// omits names that are no encoded ids.
func (f *Folders) List() ([]string, error) {
	var ids []string
	for _, dir := range []string{".", trash} {
		entries, err := fs.ReadDir(f.root.FS(), dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list the folders of allocations: %w", err)
		}
		for _, entry := range entries {
			if id, known := f.idOf(path.Join(dir, entry.Name())); known && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Tasks returns the names of the tasks that have folders in the folder of an allocation.
func (f *Folders) Tasks(alloc string) (names []string, err error) {
	folder := pathname.Encode(alloc)
	entries, err := fs.ReadDir(f.root.FS(), folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the tasks of allocation %s: %w", alloc, err)
	}
	for _, e := range entries {
		name, known := f.idOf(path.Join(folder, e.Name()))
		switch {
		case e.Name() == TaskFolder(shared):
			names = append(names, shared)
		case known && e.IsDir() && TaskFolder(name) == e.Name():
			names = append(names, name)
		}
	}
	return names, nil
}
