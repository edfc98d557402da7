package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/seed-f9cf0b39/nodedrain/internal/private"
)

// The content of a data directory.
const (
	lockFile     = "LOCK"
	nameFile     = "name"
	clusterFile  = "cluster"
	promiseFile  = "promise"
	recordFile   = "member"
	raftDir      = "raft"
	logFile      = "log.db"
	snapshotsDir = "snapshots"
	snapshotKeep = 3
	// logCacheSize is the number of the newest entries in memory, for peers that are slightly
	// behind. Each entry may be as large as a request.
	logCacheSize = 64
)

// Dir is a data directory, open and locked.
type Dir struct {
	path      string
	lock      *os.File
	log       *logStore
	cached    *raft.LogCache // over log
	snapshots *raft.FileSnapshotStore
	recorder  *recorder
	// name is the server's name, never empty.
	name string
	// cluster and promised are the contents of the files at Open, or empty.
	cluster, promised string
	// found is the position of the log at Open.
	found position

	writing sync.Mutex // held while one of the files is written
}

// Options configure [Open].
type Options struct {
	// Name is the server's name. Empty is the name in the directory, or a new UUID.
	Name string
	// Logger receives messages for operators. Nil discards them.
	Logger hclog.Logger

	// acceptLoss accepts a log that is behind the record, and an interrupted restore.
	acceptLoss bool
}

// Open opens and locks a data directory, and creates it with mode 0700 if it does not exist. It
// returns an error if another process uses the directory, if the directory has another name, or if
// another user owns it, may write to it, or may replace it. It removes the right of others to read
// an older directory. The error wraps [ErrUnsafe] if a server must not run on the data.
func Open(path string, o Options) (*Dir, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if err := limit(path, o.Logger); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	d := &Dir{path: path}
	if err := d.open(o); err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, errors.Join(err, d.Close()))
	}
	return d, nil
}

// ScratchPattern is the pattern of the names of files in the directory that hold a state while it is
// saved or restored; see [os.CreateTemp].
const ScratchPattern = "snapshot-*.tmp"

// removeScratch removes the scratch files that a killed process has left. They hold the secrets of
// nodes. The directory is locked, so no process uses them.
func (d *Dir) removeScratch(logger hclog.Logger) {
	entries, err := os.ReadDir(d.path)
	for _, e := range entries {
		if is, _ := filepath.Match(ScratchPattern, e.Name()); is { // the pattern is valid
			err = errors.Join(err, os.Remove(d.file(e.Name())))
		}
	}
	if err != nil {
		logger.Warn("a scratch file with a state may be left: remove it, because it holds the secrets of nodes", "files", d.file(ScratchPattern), "error", err)
	}
}

func (d *Dir) open(o Options) (err error) {
	if d.lock, err = lock(d.file(lockFile)); err != nil {
		return err
	}
	if _, err := private.Make(d.file(raftDir)); err != nil {
		return err
	}
	d.removeScratch(o.Logger)
	identity, err := readIdentity(d.path)
	if err != nil {
		return err
	}
	d.cluster, d.promised = identity.cluster, identity.promised
	if d.snapshots, err = raft.NewFileSnapshotStoreWithLogger(d.file(raftDir), snapshotKeep, o.Logger.Named("snapshots")); err != nil {
		return fmt.Errorf("opening raft's snapshots: %w", err)
	}
	stored, err := d.verify(o.Logger)
	if err != nil {
		return err
	}
	if err := d.checkSafe(identity, stored, o.acceptLoss); err != nil {
		return err
	}
	if !o.acceptLoss {
		if err := d.checkRestored(); err != nil {
			return err
		}
	}
	if d.name, err = d.resolveName(identity.name, o.Name); err != nil {
		return err
	}
	d.found = position{Term: stored.term, Vote: stored.vote, Index: stored.index()}
	if err := d.openLog(o.Logger, identity.record); err != nil {
		return fmt.Errorf("opening raft's log: %w", err)
	}
	if o.acceptLoss { // the record stays until MakeAlone has succeeded
		return nil
	}
	return d.recorder.startAt(d.found)
}

// openLog opens the verified log.
func (d *Dir) openLog(logger hclog.Logger, kept *record) error {
	bolt, err := raftboltdb.New(raftboltdb.Options{Path: d.logPath(), MsgpackUseNewTimeFormat: true})
	if err != nil {
		return err
	}
	d.recorder = newRecorder(d.file(recordFile), kept, logger.Named("member"))
	d.log = &logStore{BoltStore: bolt, path: d.logPath(), recorder: d.recorder, snapshots: d.snapshots}
	if d.cached, err = raft.NewLogCache(logCacheSize, d.log); err != nil {
		return err
	}
	if err := d.recorder.identify(d.name, d.cluster); err != nil {
		return err
	}
	return syncDir(d.file(raftDir)) // the log's file may be new
}

// Name returns the server's name, which is never empty.
func (d *Dir) Name() string { return d.name }

// Cluster returns the id of the server's cluster at Open, or empty.
func (d *Dir) Cluster() string { return d.cluster }

// Promised returns the content of the file promise at Open, or empty: see [Dir.KeepPromise].
func (d *Dir) Promised() string { return d.promised }

// Log returns raft's log.
func (d *Dir) Log() raft.LogStore { return d.cached }

// WriteError returns why the last entries of the log were not stored, such as a full disk, or nil. A server with
// such a log cannot lead. The error has no path, because callers without a right may read it.
func (d *Dir) WriteError() error {
	err := d.log.writeError()
	if at, is := errors.AsType[*fs.PathError](err); is {
		return at.Err
	}
	return err
}

// Stable returns the store of raft's term and vote.
func (d *Dir) Stable() raft.StableStore { return d.log }

// Snapshots returns the store of raft's snapshots.
func (d *Dir) Snapshots() raft.SnapshotStore { return d.snapshots }

// KeepCluster stores the id of the server's cluster.
func (d *Dir) KeepCluster(id string) error {
	if err := d.keep(clusterFile, id); err != nil {
		return err
	}
	return d.recorder.identify(d.name, id)
}

// KeepPromise stores the name of the server whose new cluster this one has promised to join.
func (d *Dir) KeepPromise(by string) error { return d.keep(promiseFile, by) }

// keep stores a line in a file of the directory and syncs it.
func (d *Dir) keep(file, line string) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if err := writeFile(d.file(file), line+"\n"); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}

// Close closes the open files. Raft must have been shut down.
func (d *Dir) Close() error {
	var errs []error
	if d.log != nil {
		errs = append(errs, d.log.Close())
	}
	if d.recorder != nil {
		errs = append(errs, d.recorder.close())
	}
	if d.lock != nil {
		errs = append(errs, unlock(d.lock)) // last, so that no other process opens the files before
	}
	return errors.Join(errs...)
}

func (d *Dir) file(name string) string { return filepath.Join(d.path, name) }

func (d *Dir) logPath() string { return filepath.Join(d.path, raftDir, logFile) }

// identity is the content of the files beside the log.
type identity struct {
	// name, cluster and promised are empty if their files are missing.
	name, cluster, promised string
	record                  *record // or nil: the file is missing
}

func readIdentity(dir string) (i identity, err error) {
	for file, into := range map[string]*string{nameFile: &i.name, clusterFile: &i.cluster, promiseFile: &i.promised} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return i, err
		}
		if *into = strings.TrimSpace(string(text)); *into == "" && file != promiseFile {
			return i, unsafe("the file %s is empty: %s", filepath.Join(dir, file), restoreLine(dir, file))
		}
	}
	i.record, err = readRecord(filepath.Join(dir, recordFile))
	return i, err
}

// resolveName returns the stored name. Without one it stores the configured name or a new UUID.
func (d *Dir) resolveName(kept, configured string) (string, error) {
	switch {
	case kept != "" && configured != "" && configured != kept:
		return "", fmt.Errorf("belongs to server %q, and Config.Name is %q", kept, configured)
	case kept != "":
		return kept, nil
	case configured == "":
		configured = uuid.NewString()
	}
	discarded, err := filepath.Glob(d.file(discardedPrefix + "*"))
	if err != nil {
		return "", err
	}
	for _, dir := range discarded {
		if nameOf(dir) == configured {
			return "", fmt.Errorf("%s holds the discarded data of server %q, and a new server must not have that name: choose another name", dir, configured)
		}
	}
	return configured, writeFile(d.file(nameFile), configured+"\n")
}

// nameOf returns the name of the server whose data is in a directory, or empty.
func nameOf(dir string) string {
	if text, err := os.ReadFile(filepath.Join(dir, nameFile)); err == nil && strings.TrimSpace(string(text)) != "" {
		return strings.TrimSpace(string(text))
	}
	if r, err := readRecord(filepath.Join(dir, recordFile)); err == nil && r != nil {
		return r.Name
	}
	return ""
}

// writeFile writes a file atomically: after a crash the file has the old or the new text.
func writeFile(file, text string) error {
	unfinished := file + ".new"
	f, err := os.OpenFile(unfinished, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(unfinished, file); err != nil {
		return err
	}
	return syncDir(filepath.Dir(file))
}

// limit creates a data directory, or gives an older one the mode 0700. It returns an error if other
// users can change the directory.
func limit(path string, logger hclog.Logger) error {
	before, err := private.Limit(path, 0o700, lockFile, raftDir, nameFile, recordFile)
	if err != nil {
		return err
	}
	if before != 0 {
		logger.Warn("other users had rights to the data directory: its mode is now 0700", "path", path, "mode", fmt.Sprintf("%04o", before))
	}
	return nil
}
