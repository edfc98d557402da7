package main

import (
	"cmp"
	"os"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rowview"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// server is one of several servers over the same log. All apply the same entries in the same order,
// so they have the same states. Its owner calls tick.
type server struct {
	name   string
	log    fileLog
	state  atomic.Pointer[state]
	reader rowview.Reader        // shows the newest state to the drainer
	failed atomic.Pointer[error] // why the log failed, or nil

	// The fields below belong to the leader, and are nil on another server. The leader steps its
	// drainer by the cluster's own clock. A scheduler with the wall clock calls
	// drainer.NodeDrainer.SetEnabled instead, and a goroutine of the library makes the steps.

	writer *writer
	term   *drainer.Term
	wake   chan struct{} // the drainer needs a step
	wakeAt time.Time     // it needs a step at this time, or zero
}

func newServer(name, path string) (*server, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	s := &server{name: name, log: fileLog{file: file}, wake: make(chan struct{}, 1)}
	s.state.Store(newState())
	return s, nil
}

// tick follows the log, or leads if no other server does. After an error the server must end.
func (s *server) tick(now time.Time) error {
	if s.term == nil {
		if err := s.follow(now); err != nil || s.term == nil {
			return err
		}
	}
	if err := s.failed.Load(); err != nil {
		return *err
	}
	// If the log is slow, a plan or report is written twice. The state machine ignores the second.
	current := s.state.Load()
	if p := current.nextPlan(); p != nil {
		s.propose(&entry{At: now, Plan: p})
	}
	if reports := current.reports(now); len(reports) > 0 {
		s.propose(&entry{At: now, Reports: reports})
	}
	select {
	case <-s.wake:
		s.wakeAt = now
	default:
	}
	if !s.wakeAt.IsZero() && !now.Before(s.wakeAt) {
		s.wakeAt = s.term.Step(now)
	}
	return nil
}

// follow applies what the leader has written. If there is no leader any more, this server leads.
func (s *server) follow(now time.Time) (err error) {
	leads, err := s.log.lock()
	if _, unread := s.catchUp(); err != nil || unread != nil || !leads {
		return cmp.Or(err, unread)
	}
	s.writer, s.wakeAt = newWriter(s.apply), now
	s.term, err = drainer.NewTerm(drainer.NodeDrainerConfig{Raft: s.writer}, &s.reader, s.wake)
	return err
}

// propose begins a write if this server leads. The state shows whether it was applied.
func (s *server) propose(e *entry) {
	if s.term != nil {
		s.writer.propose(e, func(drainer.Answer) {})
	}
}

// catchUp applies the entries that were not read, and returns what was refused of the last one.
func (s *server) catchUp() (refused []rules.Refusal, err error) {
	for {
		e, err := s.log.next()
		if e == nil {
			return refused, err
		}
		var after *state
		after, refused = s.state.Load().apply(e)
		s.state.Store(after)
		s.reader.Publish(after.view)
	}
}

// apply is for the writer. The leader reads its own entries from the log, as the other servers do.
// An entry that failed may be in the log. So nothing is written behind it, and another server leads.
func (s *server) apply(e *entry) (index uint64, refused []rules.Refusal, err error) {
	if e != nil {
		err = s.log.append(e)
	}
	if err == nil {
		refused, err = s.catchUp()
	}
	if err != nil {
		s.failed.Store(&err)
		s.log.file.Close() //nolint:errcheck // this releases the lock
	}
	return s.state.Load().index, refused, err
}

// close ends the server. The file is closed first, as if the process was killed: what was not
// written by then is lost.
func (s *server) close() {
	s.log.file.Close() //nolint:errcheck // everything that was answered is on the disk
	if s.term != nil {
		s.term.Close()
		close(s.writer.queue)
		<-s.writer.stopped
		s.term = nil
	}
}
