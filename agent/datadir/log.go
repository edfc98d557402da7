package datadir

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// Raft's keys for its term and its vote.
const (
	keyTerm = "CurrentTerm"
	keyVote = "LastVoteTerm"
)

// logStore is raft's log on disk, with a checksum for each entry. It keeps the record up to date.
type logStore struct {
	*raftboltdb.BoltStore
	path      string
	recorder  *recorder
	snapshots raft.SnapshotStore
}

var (
	_ raft.LogStore    = (*logStore)(nil)
	_ raft.StableStore = (*logStore)(nil)
)

// StoreLog stores one entry.
func (l *logStore) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs stores entries. They are synced to the disk, and then the record says so.
func (l *logStore) StoreLogs(entries []*raft.Log) error {
	summed := make([]*raft.Log, len(entries))
	for i, entry := range entries {
		summed[i] = withChecksum(entry)
	}
	if err := l.BoltStore.StoreLogs(summed); err != nil {
		return err
	}
	if len(entries) > 0 {
		l.recorder.appended(entries[len(entries)-1].Index)
	}
	return nil
}

// GetLog reads an entry and checks it.
func (l *logStore) GetLog(index uint64, into *raft.Log) error {
	if err := l.BoltStore.GetLog(index, into); err != nil {
		return err
	}
	if err := checkEntry(index, into); err != nil {
		return unsafe("the file %s is damaged: %w: %s", l.path, err, rejoin)
	}
	return nil
}

// DeleteRange deletes entries. If these are the last ones, the record says so first.
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
		if err := l.recorder.shorten(index); err != nil {
			return err
		}
	}
	return l.BoltStore.DeleteRange(least, most)
}

// SetUint64 stores a number. The record keeps the term and the vote.
func (l *logStore) SetUint64(key []byte, number uint64) error {
	if err := l.BoltStore.SetUint64(key, number); err != nil {
		return err
	}
	switch string(key) {
	case keyTerm:
		l.recorder.seen(number, 0)
	case keyVote:
		l.recorder.seen(0, number)
	}
	return nil
}

// The checksum of an entry lies at the end of its Extensions, behind a mark: entries of other builds
// have none. It exists on the disk only.
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

// checkEntry checks an entry as it was read, and takes its checksum off.
func checkEntry(index uint64, entry *raft.Log) error {
	if entry.Index != index {
		return fmt.Errorf("in place of raft entry %d is entry %d", index, entry.Index)
	}
	at := len(entry.Extensions) - checksumSize
	if at < 0 || string(entry.Extensions[at:at+len(checksumMark)]) != checksumMark {
		return nil
	}
	want := binary.BigEndian.Uint32(entry.Extensions[at+len(checksumMark):])
	if entry.Extensions = entry.Extensions[:at]; at == 0 {
		entry.Extensions = nil
	}
	if checksum(entry) != want {
		return fmt.Errorf("raft entry %d does not match its checksum", index)
	}
	return nil
}

func checksum(entry *raft.Log) uint32 {
	castagnoli := crc32.MakeTable(crc32.Castagnoli) // made once
	head := binary.BigEndian.AppendUint64(nil, entry.Index)
	head = binary.BigEndian.AppendUint64(head, entry.Term)
	head = append(head, byte(entry.Type))
	head = binary.BigEndian.AppendUint64(head, uint64(len(entry.Data)))
	sum := crc32.Checksum(head, castagnoli)
	sum = crc32.Update(sum, castagnoli, entry.Data)
	return crc32.Update(sum, castagnoli, entry.Extensions)
}
