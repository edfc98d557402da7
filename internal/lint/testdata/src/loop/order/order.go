// Package order is a fixture: ranges over maps.
package order

import (
	"maps"
	"slices"
	"sort"
	"time"
)

// T decides.
type T struct {
	m    map[string]int
	list []string
	sum  float64
	n    int
	text string
}

// Step is where the walk begins.
func (t *T) Step(now time.Time) (wakeAt time.Time) {
	t.seen()
	t.mixed()
	t.sequences()
	t.unseen()
	t.sorted()
	_ = t.answers()
	_ = t.first()
	_ = keysOf(t.m)
	return now
}

func (t *T) seen() {
	for k := range t.m { // want "a range over a map sees its order"
		t.list = append(t.list, k)
	}
	for k := range t.m { // want "a range over a map sees its order"
		t.emit(k)
	}
	for _, v := range t.m { // want "a range over a map sees its order"
		t.sum += float64(v)
	}
	for k := range t.m { // want "a range over a map sees its order"
		t.text += k
	}
	for k, v := range t.m { // want "a range over a map sees its order"
		if v > t.n {
			t.n, t.text = v, k
		}
	}
	byValue := map[int]string{}
	for k, v := range t.m { // want "a range over a map sees its order"
		byValue[v] = k
	}
	for k := range t.m { // want "a range over a map sees its order"
		if t.add(k) {
			continue
		}
	}
	for k := range t.m { // want "a range over a map sees its order"
		if len(k) > 3 {
			break
		}
		t.n++
	}
	for k := range t.m { // want "a range over a map sees its order"
		defer t.emit(k)
	}
	for k := range t.m { // want "a range over a map sees its order"
		visit := func() { t.list = append(t.list, k) }
		visit()
	}
	for _, v := range t.m { // want "a range over a map sees its order"
		alias := t
		alias.n = v
	}
	i := 0
	for k := range t.m { // want "a range over a map sees its order"
		t.list[i] = k
		i++
	}
}

func (t *T) mixed() {
	for _, v := range t.m { // want "a range over a map sees its order"
		if v > 0 {
			t.text = "positive"
		} else {
			t.text = "negative"
		}
	}
	for _, v := range t.m { // want "a range over a map sees its order"
		if v > 0 {
			t.n++
		} else {
			t.n = 0
		}
	}
	for k := range t.m { // want "a range over a map sees its order"
		delete(t.m, k+"'")
	}
	for k := range t.m { // want "a range over a map sees its order"
		t.m[k+"'"] = 1
	}
	set := map[int]bool{}
	for k, v := range t.m { // want "a range over a map sees its order"
		set[v] = true
		delete(set, len(k))
	}
}

func (t *T) sequences() {
	for k := range maps.Keys(t.m) { // want "a range over a map sees its order"
		t.emit(k)
	}
	t.list = slices.Collect(maps.Keys(t.m)) // want "a range over a map sees its order"
	slices.Sort(t.list[:0])
	keys := slices.Collect(maps.Keys(t.m))
	slices.Sort(keys)
	for _, k := range slices.Sorted(maps.Keys(t.m)) {
		t.emit(k)
	}
	for v := range maps.Values(t.m) {
		t.n += v
	}
	all := maps.All(t.m) // want "a range over a map sees its order"
	_ = all
	_ = maps.Collect(maps.All(t.m))
	_ = slices.SortedFunc(maps.Values(t.m), func(a, b int) int { return a - b })
}

func (t *T) unseen() {
	other := map[string]int{}
	set := map[int]bool{}
	empty := map[int]struct{}{}
	lists := map[string][]string{}
	most, flag := 0, false
	for k, v := range t.m {
		if v == 0 || k == "" {
			continue
		}
		double := 2 * v
		double++
		row := struct{ n int }{double}
		row.n++
		other[k] = row.n
		set[v] = true
		empty[v] = struct{}{}
		lists[k] = append(lists[k], k)
		t.n += v
		most = max(most, v)
		flag = flag || v > 3
		switch {
		case v > 1:
			delete(other, k)
			break
		}
		for i := range v {
			if i > 2 {
				break
			}
			t.n -= i
		}
	}
	for k := range t.m {
		delete(t.m, k)
	}
	for range t.m {
		t.n++
	}
	for k := range t.m { //lint:order one key at most
		t.emit(k)
	}
	//lint:order the sink sorts
	for k := range t.m {
		t.emit(k)
	}
	//lint:order
	for k := range t.m { // want "a range over a map sees its order"
		t.emit(k)
	}
	t.n++ //lint:order there is no loop here // want "no loop needs this order comment"
}

func (t *T) sorted() []string {
	var keys, more []string
	for k := range t.m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for k := range t.m {
		more = append(more, k)
	}
	sort.Sort(sort.StringSlice(more))
	t.list = nil
	for k := range t.m {
		t.list = append(t.list, k)
	}
	slices.SortFunc(t.list, func(a, b string) int { return len(a) - len(b) })
	return append(keys, more...)
}

func (t *T) answers() bool {
	for _, v := range t.m {
		if positive(v) {
			return true
		}
	}
	for _, v := range t.m { // want "a range over a map sees its order"
		if v > 0 {
			return true
		}
		if v < 0 {
			return false
		}
	}
	for _, v := range t.m { // want "a range over a map sees its order"
		t.n++
		if v > 0 {
			return true
		}
	}
	return false
}

func (t *T) first() string {
	for k := range t.m { // want "a range over a map sees its order"
		return k
	}
	return ""
}

func keysOf[M ~map[string]int](m M) (keys []string) {
	for k := range m { // want "a range over a map sees its order"
		keys = append(keys, k)
	}
	return keys
}

func (t *T) emit(string) {}

func (t *T) add(k string) bool {
	t.list = append(t.list, k)
	return true
}

func positive(v int) bool {
	sign := v
	if sign < 0 {
		sign = 0
	}
	return sign > 0
}
