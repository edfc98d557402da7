package datadir

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// stored describes the log and the snapshots on the disk.
type stored struct {
	// absent means that the log file does not exist or is empty.
	absent     bool
	term, vote uint64
	entries    []uint64 // the indexes of the log, ascending
	snapshot   snapshot // the newest good one, or zero
	// damaged describes each newer, damaged snapshot. damagedDirs are their directories.
	damaged, damagedDirs []string
}

type snapshot struct {
	dir         string
	term, index uint64
}

// last returns the index of the log's last entry, or zero.
func (s stored) last() uint64 {
	if len(s.entries) == 0 {
		return 0
	}
	return s.entries[len(s.entries)-1]
}

// index returns the index up to which the state can be restored.
func (s stored) index() uint64 { return max(s.last(), s.snapshot.index) }

// missing returns the index of the first entry after the snapshot that the log lacks, or zero.
func (s stored) missing() uint64 {
	next := s.snapshot.index + 1
	at, _ := slices.BinarySearch(s.entries, next)
	for _, index := range s.entries[at:] {
		if index != next {
			return next
		}
		next++
	}
	return 0
}

// verify reads the newest snapshot and the whole log.
func (d *Dir) verify(logger hclog.Logger) (s stored, err error) {
	if err := d.verifySnapshots(&s, logger); err != nil {
		return s, err
	}
	info, err := os.Stat(d.logPath())
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		s.absent = true
		return s, nil
	}
	if err != nil {
		return s, err
	}
	for _, step := range []func(string, *stored) error{verifyPages, verifyFreePages, verifyEntries} {
		err := withRecover(func() error { return step(d.logPath(), &s) })
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrUnsafe) {
			return s, err
		}
		if err != nil {
			return s, unsafe("the file %s is damaged: %w: %s", d.logPath(), err, rejoinRemedy)
		}
	}
	return s, nil
}

// withRecover returns a panic of the log's library, or a fault in the mapped file, as an error.
func withRecover(work func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("reading it failed: %v", cause)
		}
	}()
	return work()
}

// openTimeout bounds the wait for another process that has the log open.
const openTimeout = time.Second

// verifyPages reads all pages of the log's tree and the indexes of the entries. It opens the file
// read-only.
func verifyPages(path string, s *stored) error {
	db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing was written
	return db.View(func(tx *bbolt.Tx) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("it was cut to %d bytes of at least %d", info.Size(), tx.Size())
		}
		return tx.ForEach(func(name []byte, bucket *bbolt.Bucket) error {
			var previous []byte
			return bucket.ForEach(func(key, value []byte) error {
				if previous != nil && slices.Compare(previous, key) >= 0 {
					return fmt.Errorf("the keys %x and %x are not in order", previous, key)
				}
				previous = slices.Clone(key)
				_ = slices.Clone(value) // reads every byte
				if string(name) != "logs" {
					return nil
				}
				if len(key) != 8 {
					return fmt.Errorf("the key %x is not an index", key)
				}
				s.entries = append(s.entries, binary.BigEndian.Uint64(key))
				return nil
			})
		})
	})
}

// verifyFreePages checks that each page is either used once or free. Call it after verifyPages: on
// damaged pages the library's check panics in its own goroutine.
func verifyFreePages(path string, _ *stored) error {
	db, err := bbolt.Open(path, 0, &bbolt.Options{Timeout: openTimeout})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing was written
	return db.View(func(tx *bbolt.Tx) (first error) {
		if err := verifyLengths(tx, db.Info().PageSize); err != nil {
			return err
		}
		for err := range tx.Check() {
			first = cmp.Or(first, err)
		}
		return first
	})
}

// verifyLengths checks that no page reaches beyond the end of the file. The library's check would
// visit each of its overflow pages.
func verifyLengths(tx *bbolt.Tx, pageSize int) error {
	pages := int(tx.Size()) / pageSize
	for id := 2; id < pages; id++ { // the first two hold no data
		page, err := tx.Page(id)
		if err != nil {
			return err
		}
		if page.Type == "free" {
			continue
		}
		if id += page.OverflowCount; id >= pages {
			return fmt.Errorf("page %d reaches beyond the end of the file", page.ID)
		}
	}
	return nil
}

// verifyEntries decodes the entries, and reads the term and the vote.
func verifyEntries(path string, s *stored) (err error) {
	bolt, err := raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: &bbolt.Options{ReadOnly: true, Timeout: openTimeout}})
	if err != nil {
		return err
	}
	defer func() { _ = bolt.Close() }() // nothing was written
	for key, into := range map[string]*uint64{keyTerm: &s.term, keyVote: &s.vote} {
		if *into, err = bolt.GetUint64([]byte(key)); err != nil && !errors.Is(err, raftboltdb.ErrKeyNotFound) {
			return fmt.Errorf("reading %s: %w", key, err)
		}
	}
	var term uint64
	for _, index := range s.entries {
		var entry raft.Log
		if err := bolt.GetLog(index, &entry); err != nil {
			return fmt.Errorf("raft entry %d: %w", index, err)
		}
		if err := checkEntry(index, &entry); err != nil {
			return err
		}
		if entry.Term < term || entry.Term > s.term {
			return fmt.Errorf("raft entry %d is of term %d, after term %d and in term %d", index, entry.Term, term, s.term)
		}
		term = entry.Term
		if err := decodable(&entry); err != nil {
			return fmt.Errorf("raft entry %d: %w", index, err)
		}
	}
	return nil
}

// decodable returns an error if an entry is damaged. An entry of a newer build is not damaged: the FSM
// refuses it and names the remedy.
func decodable(entry *raft.Log) error {
	switch entry.Type {
	case raft.LogConfiguration:
		raft.DecodeConfiguration(entry.Data) // panics if the entry is damaged
	case raft.LogCommand:
		if _, err := shims.Decode(entry.Data); errors.Is(err, shims.ErrBroken) {
			return err
		}
	}
	return nil
}

// verifySnapshots reads the snapshots from the newest to the first good one. Raft would skip a damaged
// one and restore an older one, and the log may lack entries between them.
func (d *Dir) verifySnapshots(s *stored, logger hclog.Logger) error {
	entries, err := os.ReadDir(d.file(filepath.Join(raftDir, snapshotsDir)))
	if err != nil {
		return err
	}
	var found []snapshot
	for _, entry := range entries {
		one := snapshot{dir: d.file(filepath.Join(raftDir, snapshotsDir, entry.Name()))}
		var at int64
		_, err := fmt.Sscanf(entry.Name(), "%d-%d-%d", &one.term, &one.index, &at)
		if err == nil && entry.IsDir() && !strings.HasSuffix(entry.Name(), ".tmp") {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b snapshot) int {
		return cmp.Or(cmp.Compare(b.term, a.term), cmp.Compare(b.index, a.index), strings.Compare(b.dir, a.dir))
	})
	silent, err := raft.NewFileSnapshotStoreWithLogger(d.file(raftDir), math.MaxInt32, hclog.NewNullLogger())
	if err != nil {
		return err
	}
	for _, one := range found {
		err := one.verify(silent)
		if err == nil {
			s.snapshot = one
			return nil
		}
		s.damaged = append(s.damaged, fmt.Sprintf("%s: %v", one.dir, err))
		s.damagedDirs = append(s.damagedDirs, one.dir)
		logger.Error("a snapshot is damaged", "directory", one.dir, "error", err)
	}
	return nil
}

// verify reads a snapshot. The checksum of raft covers its state and not its meta file: raft would
// take another index from there, and would not find a snapshot whose id is changed.
func (one snapshot) verify(store raft.SnapshotStore) error {
	id := filepath.Base(one.dir)
	meta, state, err := store.Open(id)
	if err != nil {
		return err
	}
	switch {
	case meta.ID != id:
		err = fmt.Errorf("its meta.json is of snapshot %q", meta.ID)
	case meta.Term != one.term || meta.Index != one.index:
		err = fmt.Errorf("its meta.json has term %d, index %d", meta.Term, meta.Index)
	case meta.Version < raft.SnapshotVersionMin || meta.Version > raft.SnapshotVersionMax:
		err = fmt.Errorf("its meta.json has version %d", meta.Version)
	case meta.Version > raft.SnapshotVersionMin && len(meta.Configuration.Servers) == 0:
		err = errors.New("its meta.json names no servers")
	case meta.ConfigurationIndex > meta.Index:
		err = fmt.Errorf("its meta.json has servers of index %d, after its own index %d", meta.ConfigurationIndex, meta.Index)
	}
	return errors.Join(err, state.Close())
}
