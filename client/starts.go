package client

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/client/internal/turns"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// starts bounds the requests to start a task that are in flight for one driver. One job may have a
// quarter of them, because its starts may all take minutes, such as those of an image that cannot be
// downloaded. The other jobs take turns. A start that waits for its turn has no deadline for the
// driver's answer yet, and ends at once if its task must stop.
type starts struct {
	// most is the largest number of requests in flight.
	most int
	// inFlight are the starts whose request has no answer.
	inFlight []*taskStart
	waiting  turns.Queue[cluster.JobKey, *taskStart]
}

// request requests a turn for a start that can be sent to its driver. Repeated requests have no effect.
func (b *starts) request(s *taskStart) {
	if s.queued {
		return
	}
	s.queued = true
	b.waiting.Push(s.job(), s)
	if !b.mayStart(s.job()) {
		s.t.waits.set(cluster.WaitDriver, 0, "the driver "+s.t.task.Driver+" starts other tasks first")
	}
}

func (s *taskStart) job() cluster.JobKey { return s.t.alloc.rec.Alloc.JobKey() }

// mayStart reports whether a request of the job may be sent.
func (b *starts) mayStart(job cluster.JobKey) bool {
	ofJob := 0
	for _, s := range b.inFlight {
		if s.job() == job {
			ofJob++
		}
	}
	return len(b.inFlight) < b.most && ofJob < max(1, b.most/4)
}

// step sends the starts whose turn has come.
func (b *starts) step() {
	b.inFlight = slices.DeleteFunc(b.inFlight, func(s *taskStart) bool { return s.t.start != s || s.call != callStart })
	for {
		next, found := b.waiting.Pop(b.mayStart)
		if !found {
			return
		}
		if next.t.start != next {
			continue
		}
		next.queued = false
		next.t.alloc.visits.mark()
		if next.sendable() {
			next.send()
			b.inFlight = append(b.inFlight, next)
		}
	}
}
