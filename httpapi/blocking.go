package httpapi

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
)

// found is the result of a query.
type found struct {
	// index is the newest index of the rows that the query read. A waiting reader is answered when
	// it is above the reader's index.
	index uint64
	// rows counts the rows behind index. If the newest row is deleted, its index is lost: a reader
	// is answered then too. It is zero if the index is a table's, which a deletion raises.
	rows int
	// missing is the error text for a subject that does not exist, or empty.
	missing string
	// body makes the answer. It is called once, after the wait.
	body func() (any, error)
}

// read answers with the result of the query, once its index is above the reader's.
func (q *request) read(query func(State) found) error {
	got, err := q.await(query)
	if err != nil {
		return err
	}
	q.readHeaders(got.index)
	if got.missing != "" {
		return failure.New(http.StatusNotFound, got.missing)
	}
	body, err := got.body()
	if err != nil {
		return err
	}
	if q.next != "" {
		q.w.Header().Set("X-Nomad-NextToken", q.next)
	}
	return q.answer(body)
}

// await runs the query until its index is above the reader's or the wait is over. It returns the
// last result.
func (q *request) await(query func(State) found) (got found, err error) {
	ctx := q.Context()
	if q.params.index > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.waitTime())
		defer cancel()
	}
	queried, first := false, 0
	err = q.readAgain(ctx, q.params.index, func(s State) (uint64, error) {
		now := query(s)
		now.index = max(1, now.index) // with zero a client would not wait
		if !queried {
			queried, first = true, now.rows
		}
		got = now
		if now.index <= q.params.index && q.shrunk(s, now, first) {
			return q.params.index + 1, nil
		}
		return now.index, nil
	})
	if queried && err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return got, nil
	}
	return got, err
}

// shrunk reports whether rows that the reader has read were deleted: fewer rows than at the first
// query, or no row as new as the reader's index, although the state is that new.
func (q *request) shrunk(s State, now found, first int) bool {
	if now.rows == 0 && first == 0 {
		return false
	}
	return now.rows < first || now.index < q.params.index && s.Index() >= q.params.index
}

// readAgain reads what the caller may read, and again when the state was replaced.
func (q *request) readAgain(ctx context.Context, minIndex uint64, query func(State) (uint64, error)) error {
	for {
		err := q.backend.Reader.Read(ctx, minIndex, func(s State) (uint64, error) { return query(visibleTo(q.author, s)) })
		if !errors.Is(err, ErrReplaced) || ctx.Err() != nil {
			return err
		}
	}
}

// waitTime is how long the reader waits, a little of it by chance.
func (q *request) waitTime() time.Duration {
	wait := q.options.MaxWait
	if q.params.wait > 0 {
		wait = min(wait, q.params.wait)
	}
	return wait + rand.N(wait/16+1)
}
