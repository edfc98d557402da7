package main

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"
)

// slow is an entry that is in flight for a second.
type slow struct {
	inFlight *atomic.Int64
	err      error
}

func (s slow) Error() error {
	time.Sleep(time.Second)
	s.inFlight.Add(-1)
	return s.err
}

// The entries in flight reach the limit and do not exceed it. close returns the first error when
// all entries have ended.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inFlight atomic.Int64
		var most int64
		bad := errors.New("the disk is full")
		w := newWindow(3)
		for i := range 10 {
			w.send(func() raft.Future {
				most = max(most, inFlight.Add(1))
				if i == 4 {
					return slow{&inFlight, bad}
				}
				return slow{&inFlight, nil}
			})
		}
		must.ErrorIs(t, w.close(), bad)
		must.Eq(t, 3, most)
		must.Zero(t, inFlight.Load())
	})
}
