package agent

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
)

// The content of a data directory.
const (
	lockFile     = "LOCK"
	nameFile     = "name"
	clusterFile  = "cluster"
	promiseFile  = "promise"
	raftDir      = "raft"
	logFile      = "log.db"
	snapshotKeep = 3
	// logCacheSize is how many of the newest entries are kept in memory, for peers
	// that are a little behind. Each may be as large as a request.
	logCacheSize = 64
)

// disk is a data directory, open and locked.
type disk struct {
	dir       string
	lock      *os.File
	log       *raftboltdb.BoltStore
	cached    *raft.LogCache // over log
	snapshots *raft.FileSnapshotStore
	// name is the server's name, never empty.
	name string
	// cluster is the id of its cluster, promised the server that was promised to begin one, both as
	// of the opening of the directory; or empty.
	cluster, promised string

	writing sync.Mutex // one file at a time
}

// openDisk opens a data directory, and makes it if it does not exist. It refuses a second process,
// and a name that is not the directory's.
func openDisk(dir, name string, logger hclog.Logger) (*disk, error) {
	if err := makeDir(filepath.Join(dir, raftDir)); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	d := &disk{dir: dir}
	if err := d.open(name, logger); err != nil {
		return nil, fmt.Errorf("data directory %s: %w", dir, errors.Join(err, d.close()))
	}
	return d, nil
}

func (d *disk) open(name string, logger hclog.Logger) (err error) {
	dir := d.dir
	if d.lock, err = lock(filepath.Join(dir, lockFile)); err != nil {
		return err
	}
	if d.name, err = keptName(filepath.Join(dir, nameFile), name); err != nil {
		return err
	}
	if d.cluster, err = d.kept(clusterFile); err != nil {
		return err
	}
	if d.promised, err = d.kept(promiseFile); err != nil {
		return err
	}
	d.log, err = raftboltdb.New(raftboltdb.Options{Path: filepath.Join(dir, raftDir, logFile), MsgpackUseNewTimeFormat: true})
	if err != nil {
		return fmt.Errorf("opening raft's log: %w", err)
	}
	if d.cached, err = raft.NewLogCache(logCacheSize, d.log); err != nil {
		return fmt.Errorf("opening raft's log: %w", err)
	}
	d.snapshots, err = raft.NewFileSnapshotStoreWithLogger(filepath.Join(dir, raftDir), snapshotKeep, logger.Named("snapshots"))
	if err != nil {
		return fmt.Errorf("opening raft's snapshots: %w", err)
	}
	if err := syncDir(filepath.Join(dir, raftDir)); err != nil { // the log's file may be new
		return fmt.Errorf("opening raft's log: %w", err)
	}
	return nil
}

// kept is the content of a file of the directory, or empty.
func (d *disk) kept(file string) (string, error) {
	text, err := os.ReadFile(filepath.Join(d.dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// keep keeps a line in a file of the directory, for good.
func (d *disk) keep(file, line string) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if err := writeFile(filepath.Join(d.dir, file), line+"\n"); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}

// close closes the open files. Raft must have been shut down.
func (d *disk) close() error {
	var errs []error
	if d.log != nil {
		errs = append(errs, d.log.Close())
	}
	if d.lock != nil {
		errs = append(errs, unlock(d.lock)) // last
	}
	return errors.Join(errs...)
}

// keptName returns the name in a file, and puts the wanted one or a new one there
// if there is none.
func keptName(file, want string) (string, error) {
	kept, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if want == "" {
			want = uuid.NewString()
		}
		return want, writeFile(file, want+"\n")
	case err != nil:
		return "", err
	}
	name := strings.TrimSpace(string(kept))
	switch {
	case name == "":
		return "", fmt.Errorf("%s is empty: write the server's name into it", file)
	case want != "" && want != name:
		return "", fmt.Errorf("belongs to server %q, and Config.Name is %q", name, want)
	}
	return name, nil
}

// writeFile writes a file atomically: after a crash it is whole or absent.
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

// makeDir makes a directory and those above it that are missing, so that a loss of
// power does not take them away again.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	above := filepath.Dir(dir)
	if above != dir {
		if err := makeDir(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(above)
}
