package httpapi

import (
	"iter"
	"slices"
)

// list is rows that a page is taken of.
type list[Row any] struct {
	// rows are in the order of token.
	rows iter.Seq[Row]
	// token names a row. A request for the next page holds the token of its first row.
	token func(Row) string
	// compare compares a row with the row that a token names, which may be deleted. It is negative
	// if the row comes before.
	compare func(row Row, token string) int
	// full is the value that a filter is evaluated on.
	full func(Row) any
}

// page takes a page of a list, never nil: the rows that pass the request's filter, from the row
// that its token names, in the requested order. The error is the client's, or says that the client
// disconnected.
func page[Row any](q *request, l list[Row]) ([]Row, error) {
	matches, err := newFilter(q.params.filter)
	if err != nil {
		return nil, err
	}
	from, sign := q.params.nextToken, 1
	rows := l.rows
	if q.params.reverse {
		all := slices.Collect(l.rows)
		slices.Reverse(all)
		rows, sign = slices.Values(all), -1
	}
	taken := []Row{}
	for row := range rows {
		if from != "" && sign*l.compare(row, from) < 0 {
			continue
		}
		if err := q.Context().Err(); err != nil { // a filter takes its time
			return nil, err
		}
		ok, err := matches.row(func() any { return l.full(row) })
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if q.params.perPage > 0 && len(taken) == q.params.perPage {
			q.next = l.token(row)
			break
		}
		taken = append(taken, row)
	}
	return taken, nil
}
