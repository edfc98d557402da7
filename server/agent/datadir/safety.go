package datadir

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// ErrUnsafe means that a server must not run on the data of its directory. Each later start fails too.
// The text names the file and the remedy.
var ErrUnsafe = errors.New("a server must not run on this data")

// unsafeData is an error with its own text that matches [ErrUnsafe].
type unsafeData struct{ error }

// Is reports whether the target is [ErrUnsafe].
func (unsafeData) Is(target error) bool { return target == ErrUnsafe }

// Unwrap returns the error with the text.
func (u unsafeData) Unwrap() error { return u.error }

func unsafe(format string, args ...any) error { return unsafeData{fmt.Errorf(format, args...)} }

// rejoinRemedy is the remedy for lost data.
const rejoinRemedy = "put the missing data back as it was when this server last stopped, or run \"nodedrain server recover -discard\" on this directory: " +
	"it describes how this server joins again as a new member; if no other server is left, see \"nodedrain server recover -help\""

// restoreLine returns the remedy for a lost file of one line.
func restoreLine(dir, file string) string {
	if file == clusterFile {
		return "write into it the id that the same file has on the other servers of the cluster"
	}
	if r, err := readRecord(filepath.Join(dir, recordFile)); err == nil && r != nil {
		return fmt.Sprintf("write %q into it", r.Name)
	}
	return "write into it the name that the other servers show for this one (\"nodedrain server members\")"
}

// checkSafe returns an error if a server must not run on the data.
func (d *Dir) checkSafe(i identity, s stored, acceptLoss bool) error {
	if err := d.checkIdentity(i, s); err != nil {
		return err
	}
	const danger = "a server without entries that it has acknowledged could help to elect a leader that lacks them"
	member := "this server was a member of a cluster"
	if i.record != nil {
		member = fmt.Sprintf("server %s was a member of a cluster and had reached term %d, index %d", i.record.Name, i.record.Term, i.record.Index)
	}
	lost := func(what string) error {
		return unsafe("%s, and %s: %s: %s", member, what, danger, rejoinRemedy)
	}
	wasMember := i.record != nil || i.cluster != "" || s.snapshot.index > 0
	switch {
	case s.absent && wasMember:
		return lost(fmt.Sprintf("its log %s is missing or empty", d.logPath()))
	case i.record != nil && s.term == 0 && s.last() == 0:
		return lost(fmt.Sprintf("its log %s has no entry, term or vote", d.logPath()))
	case s.term < s.snapshot.term:
		return lost(fmt.Sprintf("its log %s ends at term %d, before the snapshot %s: it is an older copy", d.logPath(), s.term, s.snapshot.dir))
	}
	if err := d.checkSnapshots(s, lost); err != nil {
		return err
	}
	if i.record == nil || acceptLoss {
		return nil
	}
	if behind := (position{Term: s.term, Vote: s.vote, Index: s.index()}).behind(i.record.position); behind != "" {
		return lost(fmt.Sprintf("its log %s is an older copy or was cut: %s", d.logPath(), behind))
	}
	return nil
}

// checkSnapshots returns an error if the newest snapshot is damaged, or if the log lacks entries after
// the newest good snapshot.
func (d *Dir) checkSnapshots(s stored, lost func(string) error) error {
	missing := s.missing()
	switch {
	case len(s.damaged) > 0 && missing == 0:
		return unsafe("the newest snapshot is damaged: %s: the log has every entry after the previous snapshot, so nothing is lost: delete the directory %s",
			strings.Join(s.damaged, ", "), strings.Join(s.damagedDirs, " "))
	case len(s.damaged) > 0:
		return lost(fmt.Sprintf("its newest snapshot is damaged: %s; the log %s lacks entry %d", strings.Join(s.damaged, ", "), d.logPath(), missing))
	case missing > 0 && s.snapshot.index == 0:
		return lost(fmt.Sprintf("the snapshot in %s is missing: the log %s lacks entry %d", d.file(filepath.Join(raftDir, snapshotsDir)), d.logPath(), missing))
	case missing > 0:
		return lost(fmt.Sprintf("a newer snapshot than %s, or a part of the log, is missing: the log %s lacks entry %d", s.snapshot.dir, d.logPath(), missing))
	}
	return nil
}

// checkIdentity returns an error if the name of the server or the id of its cluster is missing or not
// that of the record.
func (d *Dir) checkIdentity(i identity, s stored) error {
	gone := func(file, remedy string) error {
		return unsafe("the file %s is missing, and this server is a member of a cluster: put it back: %s", d.file(file), remedy)
	}
	write := func(line string) string { return fmt.Sprintf("write %q into it", line) }
	switch r := i.record; {
	case i.name == "" && (r != nil || i.cluster != "" || s.last() > 0 || s.snapshot.index > 0):
		return gone(nameFile, restoreLine(d.path, nameFile))
	case r == nil:
		return nil
	case i.name != r.Name:
		return unsafe("the file %s has %q, and %s is the record of server %q: the files are of two servers: put back the files of one server", d.file(nameFile), i.name, d.file(recordFile), r.Name)
	case i.cluster == "" && r.Cluster != "":
		return gone(clusterFile, write(r.Cluster))
	case r.Cluster != "" && i.cluster != r.Cluster:
		return unsafe("the file %s has %q, and %s is the record of a server of cluster %q: put back the files of one server", d.file(clusterFile), i.cluster, d.file(recordFile), r.Cluster)
	}
	return nil
}
