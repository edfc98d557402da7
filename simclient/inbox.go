package simclient

import (
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// inbox holds what others tell a fleet until its next step. It is safe for
// concurrent use.
type inbox struct {
	// woken has capacity 1 and is sent to without blocking.
	woken chan struct{}

	mu   sync.Mutex
	mail mail // guarded by mu
}

// mail is what was told since the step before.
type mail struct {
	// changed are nodes to look at, maybe twice.
	changed []cluster.NodeID
	// all says that every node is to be looked at.
	all bool
	// settled are reports of which it has become known what became of them.
	settled []line
	// answers are what became of batches.
	answers []answer
}

// answer is what became of one batch.
type answer struct {
	batch   *batch
	applied bool
}

// post has the mail written to, and wakes.
func (b *inbox) post(write func(*mail)) {
	b.mu.Lock()
	write(&b.mail)
	b.mu.Unlock()
	select {
	case b.woken <- struct{}{}:
	default: // a wake-up is there already
	}
}

// take empties the inbox.
func (b *inbox) take() mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.mail
	b.mail = mail{}
	return m
}
