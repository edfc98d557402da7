package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// position is the position of a server in raft's log.
type position struct {
	// Term is the newest term that the server has received. Vote is the newest term in which it has
	// voted.
	Term, Vote uint64
	// Index is the index of the last entry.
	Index uint64
}

// record is the content of the file "member".
type record struct {
	position
	Name    string
	Cluster string // or empty
}

// The format of the record. The position has a fixed length, so that the recorder overwrites it in
// place, within one sector of the disk.
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
		return nil, unsafe("the file %s is damaged, so a loss of log entries cannot be detected: if you are sure that raft/log.db is complete, "+
			"delete the file, and the server accepts its log as it is; otherwise %s", path, rejoinRemedy)
	}
	return &r, nil
}

// recorder writes the record. It is safe for concurrent use.
type recorder struct {
	path   string
	logger hclog.Logger

	mu      sync.Mutex
	written *record  // the record on the disk, or nil; guarded by mu
	next    record   // the record to write; guarded by mu
	file    *os.File // the open file, or nil; guarded by mu
}

// newRecorder returns a recorder. kept is the record on the disk, or nil.
func newRecorder(path string, kept *record, logger hclog.Logger) *recorder {
	r := &recorder{path: path, logger: logger, written: kept}
	if kept != nil {
		r.next = *kept
	}
	return r
}

// identify records the name of the server and the id of its cluster. It writes no file while the
// server has no position: it is not a member yet.
func (r *recorder) identify(name, cluster string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next.Name, r.next.Cluster = name, cluster
	return r.write(true)
}

// startAt records the position of a log that was just opened. A build without the record may have
// changed the log.
func (r *recorder) startAt(p position) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next.position = p
	return r.write(true)
}

// recordAppend records the last index after an append.
func (r *recorder) recordAppend(index uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next.Index = max(r.next.Index, index)
	r.logError(r.write(false))
}

// recordTerm records a term and a vote. Zero changes nothing.
func (r *recorder) recordTerm(term, vote uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next.Term, r.next.Vote = max(r.next.Term, term), max(r.next.Vote, vote)
	r.logError(r.write(true))
}

// logError logs a failure to write the record. The server continues: a record that is behind the log
// detects less loss, and never causes the refusal of a complete log.
func (r *recorder) logError(err error) {
	if err != nil {
		r.logger.Error("writing the record failed: it is behind the log, and would not detect the loss of the last entries", "error", err)
	}
}

// recordTruncation records that entries after the index will be deleted. After an error the caller
// must not delete them.
func (r *recorder) recordTruncation(index uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next.Index = min(r.next.Index, index)
	return r.write(true)
}

// write writes the record if it has changed. The caller holds mu.
func (r *recorder) write(sync bool) error {
	if r.next.position == (position{}) || r.written != nil && *r.written == r.next {
		return nil
	}
	if err := r.replace(); err != nil {
		return fmt.Errorf("recording the position of the log: %w", err)
	}
	if _, err := r.file.WriteAt([]byte(r.next.position.String()), 0); err != nil {
		return fmt.Errorf("recording the position of the log: %w", err)
	}
	if sync {
		if err := r.file.Sync(); err != nil {
			return fmt.Errorf("recording the position of the log: %w", err)
		}
	}
	written := r.next
	r.written = &written
	return nil
}

// replace writes the whole file if the name or the cluster has changed, and opens it. The caller
// holds mu.
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

// behind returns what a log at this position lacks of the recorded position, or returns an empty text.
// A build without the record wrote a log with a newer term than the record, and may have deleted its
// last entries.
func (p position) behind(recorded position) string {
	lacks := func(what string, is, was uint64) string {
		return fmt.Sprintf("it ends at %s %d, and the server had reached %s %d", what, is, what, was)
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
