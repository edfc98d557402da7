// Package listing takes pages of lists, by a filter. Begin with [Page].
package listing

import (
	"context"
	"iter"
	"slices"
)

// Query selects a page of a list.
type Query struct {
	// Filter is an expression over the rows in full. Empty selects all rows.
	Filter string
	// NextToken is the token of the first row of the page. Empty is the first row of the list.
	NextToken string
	// PerPage is the largest number of rows in the page. Zero is all rows.
	PerPage int
	// Reverse reverses the order of the list.
	Reverse bool
}

// List is rows that a page is taken of.
type List[Row any] struct {
	// Rows are in the order of Token.
	Rows iter.Seq[Row]
	// Token names a row. A request for the next page holds the token of its first row.
	Token func(Row) string
	// Compare compares a row with the row that a token names, which may be deleted. It is negative
	// if the row comes before.
	Compare func(row Row, token string) int
	// Full is the value that a filter is evaluated on.
	Full func(Row) any
}

// Page returns a page of a list, never nil: the rows that pass the filter, from the row that the token
// names, in the requested order. Next is the token of the next page, or empty. The error is a
// failure of the client, or that of the context: a filter needs time.
func Page[Row any](ctx context.Context, q Query, l List[Row]) (taken []Row, next string, err error) {
	matches, err := newFilter(q.Filter)
	if err != nil {
		return nil, "", err
	}
	sign, rows := 1, l.Rows
	if q.Reverse {
		all := slices.Collect(l.Rows)
		slices.Reverse(all)
		rows, sign = slices.Values(all), -1
	}
	taken = []Row{}
	for row := range rows {
		if q.NextToken != "" && sign*l.Compare(row, q.NextToken) < 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, "", err
		}
		ok, err := matches.row(func() any { return l.Full(row) })
		switch {
		case err != nil:
			return nil, "", err
		case !ok:
			continue
		case q.PerPage > 0 && len(taken) == q.PerPage:
			return taken, l.Token(row), nil
		}
		taken = append(taken, row)
	}
	return taken, "", nil
}

// Where yields the rows for which the condition holds.
func Where[Row any](rows iter.Seq[Row], holds func(Row) bool) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for row := range rows {
			if holds(row) && !yield(row) {
				return
			}
		}
	}
}
