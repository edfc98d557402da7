// Package channels is a fixture: steps that may block on a channel.
package channels

import "time"

// T decides.
type T struct {
	in, out chan int
	nested  chan chan int
}

// Step is where the walk begins.
func (t *T) Step(now time.Time) (wakeAt time.Time) {
	t.out <- 1      // want "a send may block"
	_ = <-t.in      // want "a receive may block"
	v, ok := <-t.in // want "a receive may block"
	_, _ = v, ok
	for range t.in { // want "a range over a channel"
	}
	select { // want "select without a default may block"
	case v = <-t.in:
	}
	select { // want "a select chooses at random"
	case <-t.in:
	case t.out <- 1:
	default:
	}
	select {
	case v := <-<-t.nested: // want "a receive may block"
		_ = v
	default:
	}
	select {
	case <-t.in:
		<-t.in // want "a receive may block"
	default:
	}
	t.good()
	t.never()
	return now
}

func (t *T) good() {
	select {
	case v := <-t.in:
		_ = v
	default:
	}
	select {
	case t.out <- 1:
	default:
	}
	select {
	case (<-t.in):
	default:
	}
	close(t.out)
	_ = len(t.in)
}

func (t *T) never() {
	select {} // want "select without a default may block"
}
