// Package learned keeps how long something took, many times over, in few bytes. The state has a
// [Times] for each task group.
package learned

import (
	"math"
	"math/rand/v2"
	"time"
)

// Buckets is the number of buckets of a [Histogram].
const Buckets = 32

// firstEdge is the end of the first bucket.
const firstEdge = 100 * time.Millisecond

// Times are how long the allocations of a group took, by the times of the entries.
type Times struct {
	// Start is from the placement of an allocation to the first report that it runs. If it waits for the end of the
	// one that it replaces, it is from the report of that end.
	Start Histogram
	// Verdict is from that report to the first verdict, if it is good.
	Verdict Histogram
	// Stop is from the mark of an allocation that runs to the report of its end. Without a mark of a drain it is
	// from the plan that stops the allocation.
	Stop Histogram
}

// Histogram counts durations in buckets. The first bucket ends at 100 ms, and each further one at 3/2 of the end
// of the one before. The last one has no end: it begins at 5 h 19 min. The edges are integers, so all replicas
// count the same. The zero value is empty.
type Histogram [Buckets]uint16

// Add counts a duration. One below zero counts as zero: the clocks of two leaders differ. Before the counter of the
// bucket overflows, all counters are halved, so the histogram forgets what is long ago.
func (h *Histogram) Add(d time.Duration) {
	i := 0
	for edge := firstEdge; i < Buckets-1 && d >= edge; i++ {
		edge = next(edge)
	}
	if h[i] == math.MaxUint16 {
		for j := range h {
			h[j] /= 2
		}
	}
	h[i]++
}

// Bucket returns the bucket that counts a duration, which is not negative: its begin, and its end.
func Bucket(d time.Duration) (begin, end time.Duration) {
	end = firstEdge
	for i := 0; i < Buckets-1 && d >= end; i++ {
		begin, end = end, next(end)
	}
	return begin, end
}

// Total is the sum of the counters.
func (h *Histogram) Total() (total int) {
	for _, n := range h {
		total += int(n)
	}
	return total
}

// Draw returns a random duration: of a bucket by its weight, and uniform within it. The last bucket counts as
// if it ended like the others. The draw from an empty histogram is zero.
func (h *Histogram) Draw(r *rand.Rand) time.Duration {
	total := h.Total()
	if total == 0 {
		return 0
	}
	begin, end, _ := h.find(r.IntN(total))
	return begin + time.Duration(r.Int64N(int64(end-begin)))
}

// Median returns the duration that half of the counted ones do not exceed, as if the durations of a bucket
// had equal distances. The median of an empty histogram is zero.
func (h *Histogram) Median() time.Duration {
	total := h.Total()
	if total == 0 {
		return 0
	}
	_, _, median := h.find((total - 1) / 2)
	return median
}

// find returns the bucket of a counted duration, and the middle of its share of the bucket. number is its place in
// the order of the durations, below the total.
func (h *Histogram) find(number int) (begin, end, middle time.Duration) {
	end = firstEdge
	for _, n := range h {
		if number < int(n) {
			return begin, end, begin + (end-begin)*time.Duration(2*number+1)/time.Duration(2*int(n))
		}
		number -= int(n)
		begin, end = end, next(end)
	}
	return begin, end, begin
}

// next returns the edge after an edge.
func next(edge time.Duration) time.Duration { return edge * 3 / 2 }
