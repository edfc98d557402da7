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
	flying *atomic.Int64
	err    error
}

func (s slow) Error() error {
	time.Sleep(time.Second)
	s.flying.Add(-1)
	return s.err
}

// The entries in flight reach the limit and do not exceed it. close returns the first error when
// all entries have ended.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flying atomic.Int64
		var most int64
		bad := errors.New("the disk is full")
		w := newWindow(3)
		for i := range 10 {
			w.send(func() raft.Future {
				most = max(most, flying.Add(1))
				if i == 4 {
					return slow{&flying, bad}
				}
				return slow{&flying, nil}
			})
		}
		must.ErrorIs(t, w.close(), bad)
		must.Eq(t, 3, most)
		must.Zero(t, flying.Load())
	})
}
