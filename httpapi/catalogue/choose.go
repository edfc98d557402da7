package catalogue

import (
	"cmp"
	"crypto/sha256"
	"slices"
)

// Choose returns the count instances that belong to a key, in their order. While instances come and go, most keys keep
// theirs: each instance has a rank for the key that does not depend on the others.
func Choose(list []Instance, count int, key string) []Instance {
	if count >= len(list) {
		return list
	}
	ranked := slices.Clone(list)
	rank := func(i Instance) string {
		sum := sha256.Sum256([]byte(key + "\x00" + i.ID))
		return string(sum[:])
	}
	slices.SortFunc(ranked, func(a, b Instance) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Compare(b)) })
	chosen := ranked[:count]
	slices.SortFunc(chosen, Instance.Compare)
	return chosen
}
