package world

import "hash/fnv"

// hash is a running hash of what happens.
type hash uint64

// prime is that of FNV-1a with 64 bits.
const prime = 1099511628211

// add takes in numbers.
func (h *hash) add(numbers ...uint64) {
	for _, n := range numbers {
		*h = (*h ^ hash(n)) * prime
		*h ^= *h >> 29 // or the high bits of a number would never reach the low ones
	}
}

// bytes takes in bytes.
func (h *hash) bytes(b []byte) {
	f := fnv.New64a()
	_, _ = f.Write(b) // a hash takes all
	h.add(f.Sum64())
}
