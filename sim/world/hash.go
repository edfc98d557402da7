package world

import "hash/fnv"

// hash is a running hash of numbers and bytes.
type hash uint64

// prime is the 64-bit prime of FNV-1a.
const prime = 1099511628211

func (h *hash) add(numbers ...uint64) {
	for _, n := range numbers {
		*h = (*h ^ hash(n)) * prime
		*h ^= *h >> 29 // otherwise the high bits of a number would not change the low bits of the hash
	}
}

func (h *hash) bytes(b []byte) {
	f := fnv.New64a()
	_, _ = f.Write(b) // a hash accepts every write
	h.add(f.Sum64())
}
