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
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
)

// G11 replicas: the same log gives the same state on every server, and the restore of a
// snapshot gives its state. The judge compares the rows of each entry by their digests. It
// compares whole states line by line after a restore and at the end. Audits find the rows that
// an entry wrote and did not name.

// checkOrder checks that the items of an entry are sorted, so that equal states give equal
// entries.
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
		j.find(Unordered, Violation{}, "the items of a %s are not sorted", w.Message.Type())
	}
}

// replicaJudge judges G11.
type replicaJudge struct {
	*facts
	// digests are the digests of the entries, by index.
	digests map[uint64]uint64
}

// Replica compares the rows that an entry wrote on another server with those on the first
// server. It may come before or after the call of [Judge.Applied].
func (j *Judge) Replica(now time.Time, server int, a shims.Applied) {
	j.now, j.index = now, max(j.index, a.Index)
	var ids rowIDs
	ids.collect(a, applied.Entry(a).Touched)
	j.replicas.compareDigest(a.Index, j.dump.digest(a, &ids), server)
}

// compareDigest compares the digest of an entry with that of the server that applied the entry
// first.
func (j *replicaJudge) compareDigest(index, digest uint64, server int) {
	first, exists := j.digests[index]
	switch {
	case !exists:
		j.digests[index] = digest
	case first != digest:
		j.find(ReplicasDiffer, Violation{}, "entry %d wrote other rows on server %d than on the server that applied it first", index, server)
	}
}

// Restored compares a restored state with the state of its snapshot.
func (j *Judge) Restored(now time.Time, taken, restored *statestore.Snapshot) {
	j.now = now
	j.replicas.compareDumps(RestoreDiffers, []*statestore.Snapshot{taken, restored})
}

// compareDumps compares whole states with the first one.
func (j *replicaJudge) compareDumps(c Check, states []*statestore.Snapshot) {
	if len(states) < 2 {
		return
	}
	first := dumpOf(states[0])
	for i, s := range states[1:] {
		got := dumpOf(s)
		if bytes.Equal(got, first) {
			continue
		}
		ours, theirs := difference(first, got)
		j.find(c, Violation{}, "state %d of the same log: %s instead of %s", i+2, theirs, ours)
	}
}

func dumpOf(s *statestore.Snapshot) []byte {
	var b bytes.Buffer
	if err := statestore.Dump(&b, s); err != nil {
		return []byte("no dump: " + err.Error()) // differs from every dump
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
	return "more lines", "fewer lines"
}
