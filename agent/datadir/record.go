package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// position is how far a log has come.
type position struct {
	// Term is the newest term that the server has seen, Vote the newest one in which it has voted.
	Term, Vote uint64
	// Index is that of the last entry.
	Index uint64
}

// record is the content of the file "member".
type record struct {
	position
	Name    string
	Cluster string // or empty
}

// The form of the record. The positions have a fixed length, so that they are written in place,
// within one sector of the disk.
const (
	positionForm = "nodedrain member 1\nterm  %020d\nvote  %020d\nindex %020d\n"
	identityForm = "name %q\ncluster %q\n"
)

func (p position) String() string { return fmt.Sprintf(positionForm, p.Term, p.Vote, p.Index) }

// readRecord reads a record. It returns nil if the file does not exist.
func readRecord(path string) (*record, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r record
	if _, err := fmt.Sscanf(string(text), positionForm+identityForm, &r.Term, &r.Vote, &r.Index, &r.Name, &r.Cluster); err != nil || r.Name == "" {
		return nil, unsafe("the file %s is damaged, so that a loss of log entries cannot be noticed: if you are sure that raft/log.db is whole, "+
			"delete the file, and the server takes its log as it is; otherwise %s", path, rejoin)
	}
	return &r, nil
}

// recorder writes the record. It is safe for concurrent use.
type recorder struct {
	path   string
	logger hclog.Logger

	mu      sync.Mutex
	written *record  // on the disk, or nil; guarded by mu
	next    record   // guarded by mu
	file    *os.File // of the written record, or nil; guarded by mu
}

// newRecorder returns a recorder over the kept record, or nil if there is none.
func newRecorder(path string, kept *record, logger hclog.Logger) *recorder {
	r := &recorder{path: path, logger: logger, written: kept}
	if kept != nil {
		r.next = *kept
	}
	return r
}

// identify records the names of the server and of its cluster. Without a position the server is no
// member yet, and the names are only remembered.
func (r *recorder) identify(name, cluster string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next.Name, r.next.Cluster = name, cluster
	return r.write(true)
}

// startAt records the position of a log that was just opened: another build may have written it
// without the record.
func (r *recorder) startAt(p position) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next.position = p
	return r.write(true)
}

// appended records the last index of a log that has grown.
func (r *recorder) appended(index uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next.Index = max(r.next.Index, index)
	r.report(r.write(false))
}

// seen records a term and a vote.
func (r *recorder) seen(term, vote uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next.Term, r.next.Vote = max(r.next.Term, term), max(r.next.Vote, vote)
	r.report(r.write(true))
}

// report logs a failure to write the record. A record that is behind the log notices less, and
// refuses nothing that is right: the server goes on.
func (r *recorder) report(err error) {
	if err != nil {
		r.logger.Error("the record is behind the log, and would not notice its loss", "error", err)
	}
}

// shorten records that the end of the log is about to be deleted. After an error it must not be.
func (r *recorder) shorten(index uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next.Index = min(r.next.Index, index)
	return r.write(true)
}

// write writes the record, if it has changed. Called with mu.
func (r *recorder) write(sync bool) error {
	if r.next.position == (position{}) || r.written != nil && *r.written == r.next {
		return nil
	}
	if err := r.replace(); err != nil {
		return fmt.Errorf("recording how far the log has come: %w", err)
	}
	if _, err := r.file.WriteAt([]byte(r.next.position.String()), 0); err != nil {
		return fmt.Errorf("recording how far the log has come: %w", err)
	}
	if sync {
		if err := r.file.Sync(); err != nil {
			return fmt.Errorf("recording how far the log has come: %w", err)
		}
	}
	written := r.next
	r.written = &written
	return nil
}

// replace writes the whole file if its names have changed, and opens it. Called with mu.
func (r *recorder) replace() error {
	same := r.written != nil && r.written.Name == r.next.Name && r.written.Cluster == r.next.Cluster
	if same && r.file != nil {
		return nil
	}
	if !same {
		if err := writeFile(r.path, r.next.position.String()+fmt.Sprintf(identityForm, r.next.Name, r.next.Cluster)); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(r.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	old := r.file
	r.file = file
	if old != nil {
		return old.Close()
	}
	return nil
}

func (r *recorder) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return nil
	}
	return errors.Join(r.file.Sync(), r.file.Close())
}

// behind reports what the log lacks that the record says, or empty. A log in a newer term than the
// record was written by a build without the record, which may have shortened it.
func (p position) behind(recorded position) string {
	lacks := func(what string, is, was uint64) string {
		return fmt.Sprintf("it ends at %s %d, and the server had come to %s %d", what, is, what, was)
	}
	switch {
	case p.Term > recorded.Term:
		return ""
	case p.Term < recorded.Term:
		return lacks("term", p.Term, recorded.Term)
	case p.Vote < recorded.Vote:
		return lacks("vote", p.Vote, recorded.Vote)
	case p.Index < recorded.Index:
		return lacks("index", p.Index, recorded.Index)
	}
	return ""
}
