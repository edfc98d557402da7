package datadir

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// Raft's keys for its term and its vote.
const (
	keyTerm = "CurrentTerm"
	keyVote = "LastVoteTerm"
)

// logStore is raft's log on disk, with a checksum for each entry. It updates the record.
type logStore struct {
	*raftboltdb.BoltStore
	path      string
	recorder  *recorder
	snapshots raft.SnapshotStore

	mu     sync.Mutex
	failed error // why the last entries were not stored, or nil; guarded by mu
}

var (
	_ raft.LogStore    = (*logStore)(nil)
	_ raft.StableStore = (*logStore)(nil)
)

// StoreLog stores one entry.
func (l *logStore) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs stores entries and syncs them to the disk. Then it updates the record.
func (l *logStore) StoreLogs(entries []*raft.Log) error {
	summed := make([]*raft.Log, len(entries))
	for i, entry := range entries {
		summed[i] = withChecksum(entry)
	}
	err := l.BoltStore.StoreLogs(summed)
	l.mu.Lock()
	l.failed = err
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		l.recorder.recordAppend(entries[len(entries)-1].Index)
	}
	return nil
}

// writeError returns why the last entries were not stored, or nil.
func (l *logStore) writeError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// GetLog reads an entry and checks it.
func (l *logStore) GetLog(index uint64, into *raft.Log) error {
	if err := l.BoltStore.GetLog(index, into); err != nil {
		return err
	}
	if err := checkEntry(index, into); err != nil {
		return unsafe("the file %s is damaged: %w: %s", l.path, err, rejoinRemedy)
	}
	return nil
}

// DeleteRange deletes entries. If they include the last one, it updates the record first.
func (l *logStore) DeleteRange(least, most uint64) error {
	last, err := l.LastIndex()
	if err != nil {
		return err
	}
	if least > 0 && most >= last {
		index := least - 1
		snapshots, err := l.snapshots.List()
		if err != nil {
			return err
		}
		if len(snapshots) > 0 {
			index = max(index, snapshots[0].Index)
		}
		if err := l.recorder.recordTruncation(index); err != nil {
			return err
		}
	}
	return l.BoltStore.DeleteRange(least, most)
}

// SetUint64 stores a number. It copies the term and the vote to the record.
func (l *logStore) SetUint64(key []byte, number uint64) error {
	if err := l.BoltStore.SetUint64(key, number); err != nil {
		return err
	}
	switch string(key) {
	case keyTerm:
		l.recorder.recordTerm(number, 0)
	case keyVote:
		l.recorder.recordTerm(0, number)
	}
	return nil
}

// The checksum of an entry is at the end of its Extensions on the disk, after checksumMark. Entries
// of builds without checksums have no mark.
const (
	checksumMark = "nd\x00c"
	checksumSize = len(checksumMark) + 4
)

func withChecksum(entry *raft.Log) *raft.Log {
	summed := *entry
	summed.Extensions = append(make([]byte, 0, len(entry.Extensions)+checksumSize), entry.Extensions...)
	summed.Extensions = append(summed.Extensions, checksumMark...)
	summed.Extensions = binary.BigEndian.AppendUint32(summed.Extensions, checksum(entry))
	return &summed
}

// checkEntry verifies an entry that was read from the disk, and removes its checksum.
func checkEntry(index uint64, entry *raft.Log) error {
	if entry.Index != index {
		return fmt.Errorf("entry %[2]d is in the place of raft entry %[1]d", index, entry.Index)
	}
	at := len(entry.Extensions) - checksumSize
	if at < 0 || string(entry.Extensions[at:at+len(checksumMark)]) != checksumMark {
		return nil
	}
	stored := binary.BigEndian.Uint32(entry.Extensions[at+len(checksumMark):])
	if entry.Extensions = entry.Extensions[:at]; at == 0 {
		entry.Extensions = nil
	}
	if checksum(entry) != stored {
		return fmt.Errorf("raft entry %d does not match its checksum", index)
	}
	return nil
}

func checksum(entry *raft.Log) uint32 {
	castagnoli := crc32.MakeTable(crc32.Castagnoli) // the standard library caches this table
	head := binary.BigEndian.AppendUint64(nil, entry.Index)
	head = binary.BigEndian.AppendUint64(head, entry.Term)
	head = append(head, byte(entry.Type))
	head = binary.BigEndian.AppendUint64(head, uint64(len(entry.Data)))
	sum := crc32.Checksum(head, castagnoli)
	sum = crc32.Update(sum, castagnoli, entry.Data)
	return crc32.Update(sum, castagnoli, entry.Extensions)
}
