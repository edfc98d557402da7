package drainertest

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// pauseStore is a store that can pause all drains.
type pauseStore interface {
	Store
	CommitPause(index uint64, all *cluster.DrainPause) error
}

// testPause tests that the pause of all drains is visible, and that its begin and its end wake the subscribers for all
// draining nodes.
func testPause(tested Store, w *watch) error {
	pausable, can := tested.(pauseStore)
	if !can {
		return nil
	}
	s := watchedStore{tested, w}
	draining := []cluster.NodeID{"n1", "n2"}
	nodes := []*cluster.Node{{ID: "n3", Status: cluster.NodeReady}}
	for _, id := range draining {
		nodes = append(nodes, &cluster.Node{ID: id, Status: cluster.NodeReady, Drain: &cluster.Drain{ID: drainOf(id), NodeID: id}})
	}
	if err := s.Commit(1, Rows{Nodes: nodes}); err != nil {
		return fmt.Errorf("pausing all drains: %w", err)
	}
	f := newTestedFeed(s)
	begin := time.Date(2030, 1, 1, 0, 0, 0, 1000, time.UTC)
	pauses := []*cluster.DrainPause{nil, {At: begin, By: "ann"}, nil}
	views := []rules.View{s.Snapshot()}
	for i, all := range pauses[1:] {
		index := uint64(i + 2)
		returned := w.began("CommitPause of index %d: the send to wake must not block; it", index)
		err := pausable.CommitPause(index, all)
		returned()
		switch {
		case err != nil:
			return fmt.Errorf("pausing all drains at index %d: %w", index, err)
		case len(f.wake) == 0:
			return errors.New("a pause of all drains began or ended, but a feed has not woken its subscriber")
		}
		<-f.wake
		if reported := f.feed.Take(); !reported.All {
			if missing := unreported("node", draining, reported.Nodes); missing != nil {
				return fmt.Errorf("a pause of all drains began or ended: %w", missing)
			}
		}
		views = append(views, s.Snapshot())
	}
	for i, v := range views {
		if err := showsPause(v, uint64(i+1), pauses[i]); err != nil {
			return err
		}
	}
	return nil
}

// showsPause returns how a view differs from one of the index with the pause.
func showsPause(v rules.View, index uint64, want *cluster.DrainPause) error {
	view, is := v.(rules.PauseView)
	if !is {
		return errors.New("a store with CommitPause has views that do not implement rules.PauseView")
	}
	if v.Index() != index {
		return fmt.Errorf("after a pause of all drains: Index is %d, want %d", v.Index(), index)
	}
	got := view.DrainPause()
	if got == nil && want == nil || got != nil && want != nil && got.At.Equal(want.At) && got.By == want.By {
		return nil
	}
	return fmt.Errorf("DrainPause of the view of index %d is %s, want %s", index, pauseText(got), pauseText(want))
}

func pauseText(p *cluster.DrainPause) string {
	if p == nil {
		return "nil"
	}
	return fmt.Sprintf("at %s by %q", p.At.Format(time.RFC3339Nano), p.By)
}
