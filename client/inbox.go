package client

import "sync"

// inbox holds what was posted to a core until its next step. It is safe for concurrent use.
type inbox struct {
	// woken has capacity 1 and is sent to without blocking.
	woken chan struct{}

	mu    sync.Mutex
	posts []func() // guarded by mu
}

func newInbox() *inbox { return &inbox{woken: make(chan struct{}, 1)} }

// post queues a function for the next step and wakes the owner of the core.
func (b *inbox) post(f func()) {
	b.mu.Lock()
	b.posts = append(b.posts, f)
	b.mu.Unlock()
	select {
	case b.woken <- struct{}{}:
	default: // a wake-up is pending
	}
}

// take empties the inbox.
func (b *inbox) take() []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	posts := b.posts
	b.posts = nil
	return posts
}
