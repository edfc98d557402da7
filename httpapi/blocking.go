package httpapi

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

// found is what a look at the state came upon.
type found struct {
	// index is of the newest of what was looked at. A reader that waits is answered
	// when it is above the index that the reader has.
	index uint64
	// rows counts what index is the newest of. Deleting the newest takes its index
	// away: a reader is answered then too. It is zero where the index is a table's,
	// which a deletion moves.
	rows int
	// missing says what does not exist, or is empty.
	missing string
	// body makes the answer; it is called once, when there is no more waiting to do.
	body func() (any, error)
}

// read answers with what the query finds, once its index is above the reader's.
func (q *request) read(query func(State) (found, error)) error {
	got, err := q.look(query)
	if err != nil {
		return err
	}
	q.readHeaders(got.index)
	if got.missing != "" {
		return fail(http.StatusNotFound, got.missing)
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

// look runs the query until it finds news, or the time to wait is over: then what it
// found last is what there is.
func (q *request) look(query func(State) (found, error)) (got found, err error) {
	ctx := q.Context()
	if q.params.index > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.patience())
		defer cancel()
	}
	looked, first := false, 0
	err = q.lookAgain(ctx, q.params.index, func(s State) (uint64, error) {
		now, err := query(s)
		if err != nil {
			return 0, err
		}
		now.index = max(1, now.index) // with zero a client would not wait
		if !looked {
			looked, first = true, now.rows
		}
		got = now
		if now.index <= q.params.index && q.shrunk(s, now, first) {
			return q.params.index + 1, nil
		}
		return now.index, nil
	})
	if looked && err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return got, nil
	}
	return got, err
}

// shrunk reports whether rows have gone that the reader knows: fewer than at the first
// look, or none that is as new as what the reader has, although this state is.
func (q *request) shrunk(s State, now found, first int) bool {
	if now.rows == 0 && first == 0 {
		return false
	}
	return now.rows < first || now.index < q.params.index && s.Index() >= q.params.index
}

// lookAgain reads, and again when the state was replaced.
func (q *request) lookAgain(ctx context.Context, minIndex uint64, query func(State) (uint64, error)) error {
	for {
		err := q.backend.Reader.Read(ctx, minIndex, query)
		if !errors.Is(err, ErrReplaced) || ctx.Err() != nil {
			return err
		}
	}
}

// patience is how long the reader waits, a little of it by chance.
func (q *request) patience() time.Duration {
	wait := q.options.MaxWait
	if q.params.wait > 0 {
		wait = min(wait, q.params.wait)
	}
	return wait + rand.N(wait/16+1)
}
