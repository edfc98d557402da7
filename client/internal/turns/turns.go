// Package turns has a queue in which the members take turns: a long line of one member does not
// delay the others.
package turns

import "slices"

// Queue holds items in a line for each member. The lines take turns, one item each. The items of one
// line keep their order. The zero value is empty. It is not safe for concurrent use.
type Queue[M, T comparable] struct {
	// lines are in the order of their turns. No line is empty.
	lines []*line[M, T]
}

type line[M, T comparable] struct {
	member M
	items  []T
}

// Push adds an item at the end of the member's line.
func (q *Queue[M, T]) Push(member M, item T) {
	i := q.find(member)
	if i < 0 {
		i = len(q.lines)
		q.lines = append(q.lines, &line[M, T]{member: member})
	}
	q.lines[i].items = append(q.lines[i].items, item)
}

// Pop removes the item whose turn it is. It passes over the members that may not have a turn now, and they keep
// their places. It reports false if no member with an item may have a turn.
func (q *Queue[M, T]) Pop(may func(member M) bool) (item T, found bool) {
	i := slices.IndexFunc(q.lines, func(l *line[M, T]) bool { return may(l.member) })
	if i < 0 {
		return item, false
	}
	first := q.lines[i]
	item, first.items = first.items[0], first.items[1:]
	q.lines = slices.Delete(q.lines, i, i+1)
	if len(first.items) > 0 {
		q.lines = append(q.lines, first)
	}
	return item, true
}

// Any permits a turn to each member.
func Any[M any](M) bool { return true }

// Remove removes an item before its turn. It reports false if the member's line does not have the item.
func (q *Queue[M, T]) Remove(member M, item T) bool {
	i := q.find(member)
	if i < 0 {
		return false
	}
	at := slices.Index(q.lines[i].items, item)
	if at < 0 {
		return false
	}
	q.lines[i].items = slices.Delete(q.lines[i].items, at, at+1)
	if len(q.lines[i].items) == 0 {
		q.lines = slices.Delete(q.lines, i, i+1)
	}
	return true
}

// find returns the index of the member's line, or -1.
func (q *Queue[M, T]) find(member M) int {
	return slices.IndexFunc(q.lines, func(l *line[M, T]) bool { return l.member == member })
}
