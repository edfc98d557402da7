package turns_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/internal/turns"
)

// order empties the queue.
func order(q *turns.Queue[string, int]) (items []int) {
	for {
		item, found := q.Pop(turns.Any)
		if !found {
			return items
		}
		items = append(items, item)
	}
}

func TestQueue_membersTakeTurns(t *testing.T) {
	t.Parallel()
	var q turns.Queue[string, int]
	for i := range 5 {
		q.Push("many", i)
	}
	q.Push("few", 10)
	q.Push("other", 20)
	q.Push("few", 11)
	must.Eq(t, []int{0, 10, 20, 1, 11, 2, 3, 4}, order(&q))

	q.Push("many", 0)
	q.Push("few", 10)
	q.Push("few", 11)
	must.True(t, q.Remove("many", 0))
	must.False(t, q.Remove("many", 0))
	must.False(t, q.Remove("few", 12))
	must.True(t, q.Remove("few", 10))
	must.Eq(t, []int{11}, order(&q))
}

func TestQueue_passedOver(t *testing.T) {
	t.Parallel()
	var q turns.Queue[string, int]
	q.Push("full", 0)
	q.Push("few", 10)
	q.Push("few", 11)
	others := func(member string) bool { return member != "full" }
	item, found := q.Pop(others)
	must.True(t, found)
	must.Eq(t, 10, item)
	must.Eq(t, []int{0, 11}, order(&q))
	q.Push("full", 0)
	_, found = q.Pop(others)
	must.False(t, found)
}

// Between two items of one line, each other member gets at most one turn, and gets it if it waits.
func TestQueue_random(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	members := []string{"a", "b", "c", "d"}
	for range 200 {
		var q turns.Queue[string, int]
		waiting := make(map[string][]int)
		since := make(map[string]map[string]bool) // the members that had a turn while this member waited
		for i := range 200 {
			m := members[random.IntN(len(members))]
			if random.IntN(3) > 0 {
				q.Push(m, i)
				if len(waiting[m]) == 0 {
					since[m] = make(map[string]bool)
				}
				waiting[m] = append(waiting[m], i)
				continue
			}
			item, found := q.Pop(turns.Any)
			turn := ""
			for _, m := range members {
				if slices.Contains(waiting[m], item) {
					turn = m
				}
			}
			must.Eq(t, found, turn != "")
			if !found {
				continue
			}
			must.Eq(t, waiting[turn][0], item)
			waiting[turn] = waiting[turn][1:]
			for _, m := range members {
				if m != turn && len(waiting[m]) > 0 {
					must.False(t, since[m][turn], must.Sprintf("%s had two turns while %s waited", turn, m))
					since[m][turn] = true
				}
			}
			since[turn] = make(map[string]bool)
		}
	}
}
