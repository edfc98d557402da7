// Package order is a fixture: ranges over maps.
package order

import (
	"maps"
	"slices"
	"time"
)

// T decides.
type T struct {
	m    map[string]int
	list []string
	n    int
}

// Step is where the walk begins.
func (t *T) Step(now time.Time) (wakeAt time.Time) {
	for k := range t.m { // want "a range over a map has an order"
		t.emit(k)
	}
	for range t.m { // want "a range over a map has an order"
		t.n++
	}
	for k := range maps.Keys(t.m) { // want "a range over a map has an order"
		t.emit(k)
	}
	t.list = slices.Collect(maps.Keys(t.m)) // want "a range over a map has an order"
	all := maps.All(t.m)                    // want "a range over a map has an order"
	_, _ = all, keysOf(t.m)
	for _, k := range slices.Sorted(maps.Keys(t.m)) {
		t.emit(k)
	}
	_ = maps.Collect(maps.All(t.m))
	_ = slices.SortedFunc(maps.Values(t.m), func(a, b int) int { return a - b })
	for k := range t.m { //lint:order one key at most
		t.emit(k)
	}
	//lint:order the sink sorts
	for k := range t.m {
		t.emit(k)
	}
	//lint:order
	for k := range t.m { // want "a range over a map has an order"
		t.emit(k)
	}
	t.n++ //lint:order there is no loop here // want "no loop needs this order comment"
	return now
}

func keysOf[M ~map[string]int](m M) (keys []string) {
	for k := range m { // want "a range over a map has an order"
		keys = append(keys, k)
	}
	return keys
}

func (t *T) emit(string) {}
