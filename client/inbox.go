package client

import "sync"

// inbox holds the posted events of a core until its next step. It is safe for concurrent use.
type inbox struct {
	// woken has capacity 1. A send to it never blocks.
	woken chan struct{}

	mu    sync.Mutex
	posts []func() // guarded by mu
	// notes run before posts in the next step; guarded by mu
	notes [notesEnd]func()
}

// note is a kind of event that does not wake the owner of the core.
type note int

const (
	noteContact note = iota // the servers have answered a heartbeat
	noteAnswer              // an answer of the servers without changes
	notesEnd
)

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

// keep queues a function for the next step and does not wake the owner of the core. It replaces a
// queued function of the same kind. Functions that were posted earlier run earlier.
func (b *inbox) keep(kind note, f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.posts) > 0 {
		b.posts = append(b.posts, f)
		return
	}
	b.notes[kind] = f
}

// reply returns a function that queues an answer for the next step.
func reply[T any](c *Core, take func(T)) func(T) {
	return func(answer T) { c.inbox.post(func() { take(answer) }) }
}

// allocReply is like reply, for an answer to an effect of an allocation. The next step visits the
// allocation.
func allocReply[T any](a *allocRunner, take func(T)) func(T) {
	return reply(a.core, func(answer T) {
		take(answer)
		a.visits.mark()
	})
}

// take empties the inbox. The notes, of which some are nil, run before the posts.
func (b *inbox) take() (notes [notesEnd]func(), posts []func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	notes, posts = b.notes, b.posts
	b.notes, b.posts = [notesEnd]func(){}, nil
	return notes, posts
}
