package client

import (
	"errors"
	"syscall"
	"time"
)

// saves writes the record of one allocation. A newer version waits for the save in flight.
type saves struct {
	alloc *allocRunner
	// version counts the changes of the record. saved is the newest version on disk, tried is the
	// newest version whose save was answered, and flight is the version in flight, or zero.
	version, saved, tried, flight uint64
	failures                      int
	// full: the disk had no room for the last save.
	full    bool
	retryAt time.Duration
}

// note counts a change of the record.
func (s *saves) note() {
	s.version++
	s.alloc.visits.mark()
	if s.alloc.mounts.serves() {
		s.alloc.core.visiting.plugins()
	}
}

func (s *saves) step() {
	c := s.alloc.core
	if s.flight != 0 || s.saved == s.version || !c.reached(s.retryAt) {
		return
	}
	s.flight = s.version
	c.options.Shell.Save(s.alloc.rec.copy(), allocReply(s.alloc, s.answered))
}

func (s *saves) answered(err error) {
	c := s.alloc.core
	s.tried = s.flight
	s.full = noRoom(err)
	if err == nil {
		if s.failures > 0 {
			s.alloc.report.note() // the report has named the disk
		}
		s.saved, s.failures, s.retryAt = s.flight, 0, 0
		if s.alloc.rec.Ended {
			c.visiting.ended() // a replacement may take the data
		}
	} else {
		if s.failures++; s.failures == 1 {
			s.alloc.report.note()
		}
		wait := backoff(s.failures, c.options.MinRetry, c.options.MaxRetry)
		s.retryAt = c.now.Boot + wait
		c.options.Logger.Error("the record of an allocation could not be saved; its tasks do not start until it is saved", "alloc", s.alloc.id(), "error", err, "retry_in", wait)
	}
	s.flight = 0
}

func (s *saves) busy() bool { return s.flight != 0 }

// diskTrouble is why an allocation cannot begin because of the disk of the node, or empty.
func diskTrouble(a *allocRunner) string {
	text, full := "", a.saves.full
	switch {
	case a.saves.failures > 0:
		text = "the client cannot write its record to the disk"
	case !a.built && a.buildFailures > 0:
		text, full = "the client cannot create its folders on the disk", a.buildFull
	}
	if text != "" && full {
		text += ", which is full"
	}
	return text
}

// lacksRoom reports whether the last write to the disk for an allocation had no room.
func lacksRoom(a *allocRunner) bool {
	return a.saves.full && !a.saves.busy() || a.buildFull && !a.building || a.in.full && !a.order.ending()
}

// noRoom reports whether an error means that the disk is full.
func noRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
