package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/archive"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/datadir"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// snapshots saves and restores the state for the API.
type snapshots struct{ agent *Agent }

var _ httpapi.Snapshots = snapshots{}

// Save writes the newest state of this server into a file, with metadata and checksums.
func (s snapshots) Save(context.Context) (saved *httpapi.SavedSnapshot, err error) {
	a := s.agent
	file, err := a.newScratch()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	state, sum := a.server.Store().Snapshot(), sha256.New()
	meta := archive.Meta{
		ClusterVersion: state.ClusterVersion(), Cluster: a.membership.id(), Server: a.Name(), Index: state.Index(), Time: time.Now().UTC(),
	}
	persist := func(w io.Writer) error { return statestore.Persist(w, state) }
	if err := archive.Write(io.MultiWriter(file, sum), meta, persist); err != nil {
		return nil, err
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, fmt.Errorf("saving the state: %w", err)
	}
	return &httpapi.SavedSnapshot{ReadCloser: file, Size: size, SHA256: [sha256.Size]byte(sum.Sum(nil)), Index: meta.Index}, nil
}

// maxRestored bounds the index of a restored state. Raft continues above it, and must never come to the
// end of the numbers.
const maxRestored = 1 << 62

// Restore replaces the state of all servers by that of a file. It reads and checks the whole file
// first. It refuses a restore at once while another one runs: each holds a whole state in memory.
func (s snapshots) Restore(ctx context.Context, from io.Reader) (index uint64, err error) {
	a := s.agent
	if !a.peers().Leads() {
		return 0, httpapi.ErrNotLeader
	}
	if !a.restoring.TryLock() {
		return 0, fmt.Errorf("%w: another restore is running: retry when it has ended", httpapi.ErrUnavailable)
	}
	defer a.restoring.Unlock()
	var store *statestore.Store
	meta, err := archive.Read(from, func(m archive.Meta, state io.Reader) (err error) {
		if err := cluster.Require(m.ClusterVersion); err != nil {
			return err
		}
		store, err = statestore.Restore(state)
		return err
	})
	if errors.Is(err, archive.ErrInvalid) || errors.Is(err, cluster.ErrVersion) {
		return 0, fmt.Errorf("%w: %w", httpapi.ErrBadSnapshot, err)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", httpapi.ErrUnavailable, err)
	}
	if found := store.Snapshot().Index(); found > maxRestored {
		return 0, fmt.Errorf("%w: its index is %d, and %d is the highest that leaves enough indexes for later entries", httpapi.ErrBadSnapshot, found, uint64(maxRestored))
	}
	if err := a.versions.acquire(ctx); err != nil { // or the version could rise meanwhile
		return 0, err
	}
	defer a.versions.release()
	version, err := a.versions.fits(ctx, store.Snapshot().ClusterVersion())
	if err != nil {
		return 0, err
	}
	scratch, err := a.newScratch()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	if index, err = s.replaceState(ctx, store, version, scratch); err != nil {
		return 0, server.Classify(err)
	}
	a.config.Logger.Warn("the state was replaced by a saved one, and all later changes are gone",
		"saved_by", meta.Server, "saved_at", meta.Time, "of_index", meta.Index, "of_cluster", meta.Cluster, "index", index)
	return index, nil
}

// scratch is a file that is removed when it is closed.
type scratch struct{ *os.File }

// newScratch makes a scratch file in the data directory, or without one in the directory of the
// system for such files. Only this user may read it: it holds the secrets of nodes. The next start
// removes one that a crash has left in the data directory.
func (a *Agent) newScratch() (scratch, error) {
	file, err := os.CreateTemp(a.config.DataDir, datadir.ScratchPattern)
	if err != nil {
		return scratch{}, fmt.Errorf("making a scratch file: %w", err)
	}
	return scratch{file}, nil
}

// Close closes and removes the file.
func (s scratch) Close() error { return errors.Join(s.File.Close(), os.Remove(s.Name())) }
