package inbox

import "sync"

// Inbox holds items until the next step takes them. The zero value is empty. It is safe for
// concurrent use.
type Inbox[T any] struct {
	mu    sync.Mutex
	items []T // guarded by mu
}

// Post adds items.
func (b *Inbox[T]) Post(items ...T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, items...)
}

// Take removes and returns all items, the oldest first.
func (b *Inbox[T]) Take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items = nil
	return items
}
