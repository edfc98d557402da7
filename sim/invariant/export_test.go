package invariant

import (
	"hash/fnv"

	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// DigestOf returns the digest of a row.
func DigestOf[T any](row *T) uint64 {
	h := fnv.New64a()
	addRows(&dump{row: statestore.RowDump()}, h, []*T{row}, func(row *T) *T { return row })
	return h.Sum64()
}
