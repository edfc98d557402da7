package invariant

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// G11 replicas: the same log gives the same state on every server; restore of a
// snapshot gives the state it was taken from. Entry by entry the rows that an
// entry names are compared by their digest; whole states, after a restore and at
// the end, line by line. That entries write no more than they name is found when
// everything is counted.

// checkOrder checks the order of an entry's items: in another order, equal states would not
// give equal entries.
func (j *writeJudge) checkOrder(w Write) {
	sorted := true
	switch m := w.Message.(type) {
	case *shims.AllocUpdateDesiredTransition:
		sorted = slices.IsSortedFunc(m.Marks.Marks, compareMarks) && slices.IsSortedFunc(m.Reevaluate, cluster.GroupKey.Compare) &&
			slices.IsSortedFunc(m.Evals, func(a, b *cluster.Evaluation) int { return jobOf(a).Compare(jobOf(b)) })
	case *shims.NodesDrainComplete:
		sorted = slices.IsSortedFunc(m.Completions.Completions, func(a, b rules.Completion) int { return cmp.Compare(a.Node, b.Node) })
	}
	if !sorted {
		j.find(Unordered, Violation{}, "the items of a %s are in no order", w.Message.Type())
	}
}

// replicaJudge judges G11.
type replicaJudge struct {
	*facts
	// digests are those of the entries, by index; at zero is none.
	digests map[uint64]uint64
}

// Replica compares what an entry has made on another server with what it made on
// the first. It may be told before or after [Judge.Applied] is.
func (j *Judge) Replica(now time.Time, server int, a shims.Applied) {
	j.now, j.index = now, max(j.index, a.Index)
	j.counters.Replicas++
	j.replicas.compareDigest(a.Index, Digest(a), server)
}

// compareDigest keeps the digest of an entry, and compares it with that of the
// server which has applied the entry first.
func (j *replicaJudge) compareDigest(index, digest uint64, server int) {
	first, known := j.digests[index]
	switch {
	case !known:
		j.digests[index] = digest
	case first != digest:
		j.find(ReplicasDiffer, Violation{}, "entry %d has made other rows on server %d than on the first that applied it", index, server)
	}
}

// Restored compares a state that was restored with the one of which the snapshot
// was taken.
func (j *Judge) Restored(now time.Time, taken, restored *statestore.Snapshot) {
	j.now = now
	j.replicas.compareDumps(RestoreDiffers, []*statestore.Snapshot{taken, restored})
}

// compareDumps compares whole states with the first.
func (j *replicaJudge) compareDumps(c Check, states []*statestore.Snapshot) {
	if len(states) < 2 {
		return
	}
	want := dump(states[0])
	for i, s := range states[1:] {
		rest := remainder{want: want}
		if err := s.Dump(&rest); err == nil && rest.same() {
			continue
		}
		ours, theirs := difference(want, dump(s))
		j.find(c, Violation{}, "state %d of the same log: %s instead of %s", i+2, theirs, ours)
	}
}

// remainder is what is still to be written to come to the same as was written before.
type remainder struct {
	want   []byte
	differ bool
}

// Write takes what is written next.
func (r *remainder) Write(b []byte) (int, error) {
	rest, is := bytes.CutPrefix(r.want, b)
	r.want, r.differ = rest, r.differ || !is
	return len(b), nil
}

func (r *remainder) same() bool { return !r.differ && len(r.want) == 0 }

func dump(s *statestore.Snapshot) []byte {
	var b bytes.Buffer
	if err := s.Dump(&b); err != nil {
		return []byte("no dump: " + err.Error()) // which differs from one that is
	}
	return b.Bytes()
}

// difference returns the first lines in which two dumps differ.
func difference(a, b []byte) (ours, theirs string) {
	as, bs := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(as), len(bs)) {
		if !bytes.Equal(as[i], bs[i]) {
			return string(as[i]), string(bs[i])
		}
	}
	return "more", "less"
}
