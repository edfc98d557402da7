package invariant

// DigestOf returns the digest of a row.
func DigestOf[T any](row *T) uint64 { return uint64(digestOf(row)) }
