package invariant

import (
	"bytes"
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// dump writes rows as text.
type dump struct {
	row func(b []byte, row any) []byte
	// a and b are the memory for two rows.
	a, b []byte
}

// append appends all fields of a row. Nil is a missing row. Of the job of an allocation it has only
// the version, because the digest of the job's own entry has covered its content.
func (d *dump) append(b []byte, row any) []byte {
	b = d.row(b, row)
	if a, is := row.(*cluster.Allocation); is && a != nil && a.Job != nil {
		b = fmt.Appendf(b, " %s %d %d %d\n", keyOf(a.Job), a.Job.Version, a.Job.CreateIndex, a.Job.JobModifyIndex)
	}
	return b
}

// same reports whether two rows have equal fields.
func same[T any](d *dump, a, b *T) bool {
	if a == b {
		return true
	}
	d.a, d.b = d.append(d.a[:0], a), d.append(d.b[:0], b)
	return bytes.Equal(d.a, d.b)
}

// digest returns a hash of the rows that the entry may have written, as they are after it. Equal
// rows have equal digests on every machine.
func (d *dump) digest(a shims.Applied, rows *rowIDs) uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, a.Index, a.Type)
	addRows(d, h, rows.Nodes, a.After.Node)
	addRows(d, h, rows.Jobs, a.After.Job)
	addRows(d, h, rows.Allocs, a.After.Alloc)
	addRows(d, h, rows.evals, a.After.Eval)
	addRows(d, h, rows.records, a.After.DrainRecord)
	return h.Sum64()
}

// addRows adds the rows with the ids.
func addRows[K, T any](d *dump, h hash.Hash, ids []K, row func(K) *T) {
	for _, id := range ids {
		d.a = d.append(d.a[:0], row(id))
		_, _ = h.Write(d.a) // a hash accepts every write
	}
}
