package datadir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/shims"
)

const discardedPrefix = "discarded-"

// Discarded is the result of [Discard].
type Discarded struct {
	// Name is the old name of the server, or empty.
	Name string
	// Dir is the directory to which the data was moved.
	Dir string
}

// Discard moves the data of a server to a subdirectory, so that a new server can use the directory. It
// deletes nothing. It returns an error if a process uses the directory. The new server must have
// another name.
func Discard(path string, now time.Time) (done Discarded, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("data directory %s: %w", path, err)
		}
	}()
	locked, err := lockExisting(path, hclog.NewNullLogger())
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, unlock(locked)) }()
	done = Discarded{Name: nameOf(path), Dir: filepath.Join(path, discardedPrefix+now.UTC().Format("20060102T150405Z"))}
	var found []string
	for _, name := range []string{raftDir, clusterFile, promiseFile, nameFile, restoringFile, recordFile} { // the record last: without it a lost log is not detected
		if _, err := os.Lstat(filepath.Join(path, name)); err == nil {
			found = append(found, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return done, err
		}
	}
	if len(found) == 0 {
		return done, errors.New("contains no data of a server")
	}
	if err := os.Mkdir(done.Dir, 0o700); err != nil {
		return done, err
	}
	for _, name := range found {
		if err := os.Rename(filepath.Join(path, name), filepath.Join(done.Dir, name)); err != nil {
			return done, err
		}
	}
	return done, errors.Join(syncDir(done.Dir), syncDir(path))
}

// lockExisting locks a directory that must exist. It returns an error if other users can change it.
func lockExisting(path string, logger hclog.Logger) (*os.File, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, errors.New("is not a directory")
	}
	if err := limit(path, logger); err != nil {
		return nil, err
	}
	return lock(filepath.Join(path, lockFile))
}

// Alone is the result of [MakeAlone].
type Alone struct {
	Name string
	// Term and Index are those of the last entry of the state.
	Term, Index uint64
	// Lost describes how far the log is behind the record, or is empty.
	Lost string
	// Gone are the other servers of the old cluster.
	Gone []raft.Server
	// Cluster is the id of the new cluster.
	Cluster string
}

// MakeAlone makes the last server of a cluster the only member of a new cluster with its state. It
// treats every entry of the log as committed. It accepts a log that is behind the record. It returns
// an error if the log is damaged or if another server accepts connections.
func MakeAlone(ctx context.Context, path string, logger hclog.Logger) (done Alone, err error) {
	locked, err := lockExisting(path, logger) // Open would create the directory
	if err != nil {
		return done, fmt.Errorf("data directory %s: %w", path, err)
	}
	if err := unlock(locked); err != nil {
		return done, err
	}
	kept, err := readIdentity(path)
	if err != nil {
		return done, fmt.Errorf("data directory %s: %w", path, err)
	}
	d, err := Open(path, Options{Logger: logger, acceptLoss: true})
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if kept.record != nil {
		done.Lost = d.found.behind(kept.record.position)
	}
	if err := d.makeAlone(ctx, &done, kept.record, logger); err != nil {
		return done, fmt.Errorf("data directory %s: %w", path, err)
	}
	return done, nil
}

func (d *Dir) makeAlone(ctx context.Context, done *Alone, kept *record, logger hclog.Logger) error {
	settings := raft.DefaultConfig()
	settings.LocalID, settings.Logger = raft.ServerID(d.name), logger
	_, transport := raft.NewInmemTransport("")
	known, err := raft.GetConfiguration(settings, shims.NewFSM(shims.FSMConfig{Logger: logger}), d.cached, d.log, d.snapshots, transport)
	if err != nil {
		return fmt.Errorf("reading the servers of the cluster: %w", err)
	}
	var self *raft.Server
	for _, s := range known.Servers {
		if s.ID == settings.LocalID {
			self = &s
		} else {
			done.Gone = append(done.Gone, s)
		}
	}
	switch {
	case self == nil:
		return fmt.Errorf("server %s is in no cluster: it has nothing to recover", d.name)
	case len(done.Gone) == 0 && done.Lost == "":
		return fmt.Errorf("server %s is already the only one of its cluster, and its log is complete: start it", d.name)
	}
	for _, s := range done.Gone {
		if conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", string(s.Address)); err == nil {
			return errors.Join(fmt.Errorf("server %s still runs: %s accepts connections: if the other servers have a majority, start this server without recovery", s.ID, s.Address), conn.Close())
		}
	}
	fsm := shims.NewFSM(shims.FSMConfig{Logger: logger})
	alone := raft.Configuration{Servers: []raft.Server{{ID: self.ID, Address: self.Address}}}
	if err := raft.RecoverCluster(settings, fsm, d.cached, d.log, d.snapshots, transport, alone); err != nil {
		return fmt.Errorf("recovering: %w", cmp.Or(fsm.Err(), err))
	}
	snapshots, err := d.snapshots.List()
	if err != nil {
		return err
	}
	now := position{Term: d.found.Term, Vote: d.found.Vote, Index: snapshots[0].Index}
	if kept != nil {
		now.Term = max(now.Term, kept.Term) // the server may have voted in that term
	}
	if err := d.log.SetUint64([]byte(keyTerm), now.Term); err != nil {
		return err
	}
	if err := d.recorder.startAt(now); err != nil {
		return err
	}
	if err := d.EndRestore(); err != nil {
		return err
	}
	done.Name, done.Term, done.Index, done.Cluster = d.name, snapshots[0].Term, snapshots[0].Index, uuid.NewString()
	return d.KeepCluster(done.Cluster)
}

// dialTimeout bounds the attempt to connect to another server.
const dialTimeout = 2 * time.Second
