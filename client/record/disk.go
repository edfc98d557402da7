package record

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

const (
	// format is the version of a file's form.
	format = 1
	// title begins each file.
	title = "nodedrain-record"

	// The suffixes of files. No encoded key contains the "~".
	stored   = "~record"
	aside    = "~damaged"
	unsynced = "~new"
)

// Disk is a [Store] in a folder on disk. Several goroutines may use it.
type Disk struct {
	dir    string
	ops    operations
	writes atomic.Uint64
}

var _ Store = (*Disk)(nil)

// OpenDisk opens a folder of records, and makes it if it does not exist. It deletes what writes that
// never ended left behind. The caller holds the [Lock] of the folder above it.
func OpenDisk(dir string) (*Disk, error) { return openDisk(dir, realDisk{}) }

func openDisk(dir string, ops operations) (*Disk, error) {
	d := &Disk{dir: dir, ops: ops}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	names, err := d.names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.Contains(name, unsynced) {
			if err := ops.remove(filepath.Join(dir, name)); err != nil {
				return nil, fmt.Errorf("records: %w", err)
			}
		}
	}
	// A write before the crash may have renamed its file and not have synced the folder. What All
	// returns must not change after the next crash.
	if err := errors.Join(ops.syncDir(dir), ops.syncDir(filepath.Dir(dir))); err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	return d, nil
}

func (d *Disk) names() ([]string, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

func (d *Disk) path(key, suffix string) string {
	return filepath.Join(d.dir, pathname.Encode(key)+suffix)
}

// Put implements [Store]. A full disk leaves the old record, and the error is [syscall.ENOSPC].
func (d *Disk) Put(key string, content []byte) error {
	if key == "" {
		return errors.New("record: the key is empty")
	}
	temporary := d.path(key, unsynced+strconv.FormatUint(d.writes.Add(1), 10))
	err := d.ops.write(temporary, encode(key, content))
	if err == nil {
		err = d.ops.rename(temporary, d.path(key, stored))
	}
	if err != nil {
		// If the deletion fails, the next start deletes it.
		_ = d.ops.remove(temporary)
		return fmt.Errorf("write record %s: %w", key, err)
	}
	if err := d.ops.syncDir(d.dir); err != nil {
		return fmt.Errorf("write record %s: %w", key, err)
	}
	return nil
}

// Delete implements [Store].
func (d *Disk) Delete(key string) error { return d.remove(d.path(key, stored)) }

// Discard implements [Store].
func (d *Disk) Discard(damaged Damaged) error {
	return d.remove(filepath.Join(d.dir, damaged.Name+aside))
}

func (d *Disk) remove(path string) error {
	err := d.ops.remove(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete record: %w", err)
	}
	// Also when there was none: an earlier deletion may have failed at this point.
	if err := d.ops.syncDir(d.dir); err != nil {
		return fmt.Errorf("delete record %s: %w", path, err)
	}
	return nil
}

// All implements [Store].
func (d *Disk) All() ([]Record, []Damaged, error) {
	names, err := d.names()
	if err != nil {
		return nil, nil, err
	}
	var all []Record
	var damaged []Damaged
	moved := false
	for _, file := range names {
		if name, ok := strings.CutSuffix(file, aside); ok {
			damaged = append(damaged, d.damagedRecord(name, errors.New("it was found damaged by an earlier start")))
			continue
		}
		name, ok := strings.CutSuffix(file, stored)
		if !ok {
			continue
		}
		path := filepath.Join(d.dir, file)
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another goroutine has deleted it
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read record: %w", err)
		}
		r, err := decode(data)
		if err == nil && pathname.Encode(r.Key) != name {
			err = fmt.Errorf("it is the record of %q", r.Key)
		}
		switch {
		case errors.Is(err, ErrNewer):
			return nil, nil, fmt.Errorf("read record %s: %w", path, err)
		case err != nil:
			if err := d.ops.rename(path, filepath.Join(d.dir, name+aside)); err != nil {
				return nil, nil, fmt.Errorf("set a damaged record aside: %w", err)
			}
			moved = true
			// An earlier damaged record of the same key is replaced: both mean the same.
			damaged = slices.DeleteFunc(damaged, func(d Damaged) bool { return d.Name == name })
			damaged = append(damaged, d.damagedRecord(name, err))
		default:
			all = append(all, r)
		}
	}
	if moved {
		if err := d.ops.syncDir(d.dir); err != nil {
			return nil, nil, fmt.Errorf("set a damaged record aside: %w", err)
		}
	}
	return sorted(all), damaged, nil
}

func (d *Disk) damagedRecord(name string, why error) Damaged {
	path := filepath.Join(d.dir, name+aside)
	key, err := pathname.Decode(name)
	if err != nil {
		key = ""
	}
	return Damaged{Name: name, Key: key, Path: path, Err: fmt.Errorf("the record of %s is damaged and was set aside as %s: %w", describe(name, key), path, why)}
}

func describe(name, key string) string {
	if key != "" {
		return strconv.Quote(key)
	}
	return name
}

// encode returns the file of a record: the title, the format, the checksum of all that follows and
// of the format, then the key as a quoted string, and the content.
func encode(key string, content []byte) []byte {
	body := fmt.Appendf(nil, "%s\n%s", strconv.Quote(key), content)
	return append(header(format, body), body...)
}

func header(format int, body []byte) []byte {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d\n", format)
	sum.Write(body)
	return fmt.Appendf(nil, "%s %d %x\n", title, format, sum.Sum(nil))
}

var errChecksum = errors.New("its checksum is wrong")

// decode reads a file. The line at its begin has the same form in every format, so that a damaged
// file is never taken for a newer one.
func decode(data []byte) (Record, error) {
	line, body, _ := bytes.Cut(data, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) != 3 {
		return Record{}, errChecksum
	}
	version, err := strconv.Atoi(fields[1])
	if err != nil || !bytes.Equal(header(version, body), append(line, '\n')) {
		return Record{}, errChecksum
	}
	if version > format {
		return Record{}, fmt.Errorf("it has format %d, and this client reads format %d: %w", version, format, ErrNewer)
	}
	quoted, content, found := bytes.Cut(body, []byte("\n"))
	key, err := strconv.Unquote(string(quoted))
	if err != nil || !found || key == "" || version != format {
		return Record{}, errors.New("it was written by another program")
	}
	return Record{Key: key, Content: content}, nil
}

// operations are the changes of a disk. Each may fail.
type operations interface {
	// write makes a new file and syncs it.
	write(path string, data []byte) error
	rename(from, to string) error
	remove(path string) error
	syncDir(path string) error
}

type realDisk struct{}

func (realDisk) write(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func (realDisk) rename(from, to string) error { return os.Rename(from, to) }

func (realDisk) remove(path string) error { return os.Remove(path) }

func (realDisk) syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
