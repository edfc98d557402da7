package main

import (
	"container/heap"
	"fmt"
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// deadlineTable holds deadlines by node.
type deadlineTable interface {
	watch(cluster.NodeID, time.Time)
	remove(cluster.NodeID)
	next() time.Time
}

// notified is the drainer's table.
type notified struct{ drainer.DrainDeadlineNotifier }

func (n notified) watch(id cluster.NodeID, at time.Time) { n.Watch(id, at) }
func (n notified) remove(id cluster.NodeID)              { n.Remove(id) }
func (n notified) next() time.Time                       { return n.Step(drainer.Look{Now: time.Unix(0, 0)}) }

// plainHeap is a heap of the standard library and a map from nodes to their indexes.
type plainHeap struct {
	items []*plainItem
	at    map[cluster.NodeID]*plainItem
}

type plainItem struct {
	node     cluster.NodeID
	deadline time.Time
	place    int
}

func (h *plainHeap) Len() int           { return len(h.items) }
func (h *plainHeap) Less(i, j int) bool { return h.items[i].deadline.Before(h.items[j].deadline) }
func (h *plainHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].place, h.items[j].place = i, j
}

func (h *plainHeap) Push(item any) {
	i := item.(*plainItem)
	i.place = len(h.items)
	h.items = append(h.items, i)
}

func (h *plainHeap) Pop() any {
	last := len(h.items) - 1
	item := h.items[last]
	h.items = h.items[:last]
	return item
}

func (h *plainHeap) watch(id cluster.NodeID, at time.Time) {
	if item := h.at[id]; item != nil {
		item.deadline = at
		heap.Fix(h, item.place)
		return
	}
	item := &plainItem{node: id, deadline: at}
	h.at[id] = item
	heap.Push(h, item)
}

func (h *plainHeap) remove(id cluster.NodeID) {
	if item := h.at[id]; item != nil {
		heap.Remove(h, item.place)
		delete(h.at, id)
	}
}

func (h *plainHeap) next() time.Time { return h.items[0].deadline }

// figureDeadlines: the drainer's table of deadlines costs about as much as a heap and a map of the
// same size.
func figureDeadlines(b *testing.B) {
	for _, c := range []struct {
		name string
		at   func(i int) time.Time
	}{
		{"over-a-month", func(i int) time.Time { return time.Unix(1_000_000+int64(i*7919%2_592_000), 0) }},
		// Like the drains of one command: all deadlines are within the window of one batch.
		{"within-100-ms", func(i int) time.Time { return time.Unix(1_000_000, int64(i*7919%trackedNodes)*1000) }},
	} {
		b.Run(c.name, func(b *testing.B) { compareDeadlines(b, c.at) })
	}
}

// deadlineRounds is the number of measured rounds, trackedNodes is the size of the table.
const trackedNodes, deadlineRounds = 100_000, 200_000

// compareDeadlines compares the drainer's table with a plain heap. A round removes a node and adds it
// again with the same deadline, and reads the next deadline after each change.
func compareDeadlines(b *testing.B, at func(i int) time.Time) {
	nodes := make([]cluster.NodeID, trackedNodes)
	for i := range nodes {
		nodes[i] = cluster.NodeID(fmt.Sprintf("7c6b3110-d0f8-951f-b791-%012d", i))
	}
	side := func(make func() deadlineTable) measure.Side {
		return func() func(*measure.Meter) {
			table := make()
			for i, n := range nodes {
				table.watch(n, at(i))
			}
			table.next()
			return func(*measure.Meter) {
				for round := range deadlineRounds {
					i := round * 31 % trackedNodes
					table.remove(nodes[i])
					table.next()
					table.watch(nodes[i], at(i))
					table.next()
				}
			}
		}
	}
	measure.Figure(b,
		side(func() deadlineTable { return &plainHeap{at: map[cluster.NodeID]*plainItem{}} }),
		side(func() deadlineTable {
			return notified{drainer.NewDeadlineHeap(drainer.Env{DeadlineCoalesce: drainer.DefaultDeadlineCoalesce})}
		}),
	).Report(b)
}
