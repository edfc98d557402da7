package statestore

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
)

// tellings holds what is to be told, in the order in which it came, each once with the
// entry it changed in, if that was one alone. The zero value is empty.
type tellings[K comparable] struct {
	items []drainer.Told[K]
	// at has where each item is once there have been more than fewItems, and is nil
	// until then.
	at map[K]int
}

// add adds what has changed in an entry.
func (t *tellings[K]) add(key K, index uint64) {
	if i := t.find(key); i >= 0 {
		if t.items[i].At != index {
			t.items[i].At = 0
		}
		return
	}
	t.items = append(t.items, drainer.Told[K]{Key: key, At: index})
	switch {
	case t.at != nil:
		t.at[key] = len(t.items) - 1
	case len(t.items) > fewItems:
		t.at = make(map[K]int, 2*len(t.items))
		for i, item := range t.items {
			t.at[item.Key] = i
		}
	}
}

// find returns where the item is, or -1.
func (t *tellings[K]) find(key K) int {
	if t.at == nil {
		return slices.IndexFunc(t.items, func(item drainer.Told[K]) bool { return item.Key == key })
	}
	if i, is := t.at[key]; is {
		return i
	}
	return -1
}

// take returns the items and empties the set.
func (t *tellings[K]) take() []drainer.Told[K] {
	items := t.items
	*t = tellings[K]{}
	return items
}
