package simclient

import (
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// inbox holds messages to a fleet until its next step. It is safe for concurrent use.
type inbox struct {
	// woken has capacity 1 and is sent to without blocking.
	woken chan struct{}

	mu   sync.Mutex
	mail mail // guarded by mu
}

// mail is the messages since the last step.
type mail struct {
	// changed are nodes to read. A node may occur twice.
	changed []cluster.NodeID
	// all says that every node may have changed.
	all bool
	// settled are the answered reports.
	settled []line
	// answers are the answers to batches.
	answers []answer
}

// answer is the answer to one batch.
type answer struct {
	batch   *batch
	applied bool
}

// post writes to the mail, and wakes the fleet.
func (b *inbox) post(write func(*mail)) {
	b.mu.Lock()
	write(&b.mail)
	b.mu.Unlock()
	select {
	case b.woken <- struct{}{}:
	default: // a wake-up is pending
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
