// Package outlook estimates, on the leader, when running drains end. Begin with [New].
package outlook

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/plan"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Outlook has the estimates of one server. A play of all running drains makes them. Readers get those of the last
// play: no request and no scrape makes one. It is safe for concurrent use.
type Outlook struct {
	store    func() *statestore.Store
	settings plan.Settings
	// estimates are those of the last play of the term, or nil.
	estimates atomic.Pointer[map[cluster.DrainID]plan.Estimate]
}

// New returns an outlook without estimates. Store returns the newest store of the server, and config is that of
// its drainer.
func New(store func() *statestore.Store, config drainer.NodeDrainerConfig) *Outlook {
	return &Outlook{store: store, settings: plan.Settings{Drainer: config}}
}

const (
	// interval is the least time between two plays.
	interval = 2 * time.Second
	// share is the least pause after a play, as a multiple of its time. So plays take at most a tenth of a processor.
	share = 9
	// longest bounds the time of a play.
	longest = 30 * time.Second
)

// Lead plays while the server leads: until the context ends. It starts no goroutine.
func (o *Outlook) Lead(ctx context.Context) {
	defer o.estimates.Store(nil)
	var last plan.Outlook
	for o.awaitDrain(ctx) {
		began := time.Now()
		playing, cancel := context.WithTimeout(ctx, longest)
		if err := last.Play(playing, o.store(), began.UTC(), o.settings); err != nil {
			last = plan.Outlook{} // no estimate is better than an old one
		}
		cancel()
		estimates := last.Estimates()
		o.estimates.Store(&estimates)
		pause(ctx, max(interval, share*time.Since(began)))
	}
}

// awaitDrain waits until a drain runs that is not paused, and returns false when the context ends.
func (o *Outlook) awaitDrain(ctx context.Context) bool {
	const runs, none = 2, 1 // above and not above the index that Blocking waits for
	for ctx.Err() == nil {
		// An error is the context's, or the store was replaced.
		found, _ := o.store().Blocking(ctx, none, func(s *statestore.Snapshot) (uint64, error) {
			all := s.DrainView().DrainPause()
			for n := range s.DrainView().DrainingNodes() {
				if n.Drain.PausedSince(all).IsZero() {
					return runs, nil
				}
			}
			return none, nil
		})
		if found == runs {
			return true
		}
	}
	return false
}

// pause waits, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Add adds the estimates to the status of drains. A paused drain has none.
func (o *Outlook) Add(all []rules.Status) {
	estimates := o.estimates.Load()
	if estimates == nil {
		return
	}
	for i := range all {
		if e, has := (*estimates)[all[i].Drain.ID]; has && all[i].PausedSince.IsZero() {
			all[i].EndsAbout, all[i].EndsLater = e.Ends, e.Later
		}
	}
}

// Explainer is an account of running drains, with the estimates.
type Explainer struct {
	httpapi.Explainer
	Outlook *Outlook
}

// Explain reports the drain of one node.
func (e Explainer) Explain(id cluster.NodeID) (rules.Report, error) {
	report, err := e.Explainer.Explain(id)
	if err == nil {
		one := []rules.Status{report.Status}
		e.Outlook.Add(one)
		report.Status = one[0]
	}
	return report, err
}

// Status reports every running drain in numbers.
func (e Explainer) Status() ([]rules.Status, error) {
	all, err := e.Explainer.Status()
	e.Outlook.Add(all)
	return all, err
}
