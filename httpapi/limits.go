package httpapi

import "sync"

// waiting counts the readers that wait, or that read an event stream, so that they cannot take every
// connection and all memory, and one client cannot take the place of all others. It is safe for concurrent use.
type waiting struct {
	most, mostPerClient int

	mu sync.Mutex
	// total is the sum of clients; guarded by mu.
	total int
	// clients counts by client; none is zero; guarded by mu.
	clients map[client]int
}

// client is a waiting client: the hash of a token or of an address.
type client [32]byte

func newWaiting(most, mostPerClient int) *waiting {
	return &waiting{most: most, mostPerClient: mostPerClient, clients: map[client]int{}}
}

// begin counts one more, or reports that there are too many.
func (w *waiting) begin(c client) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.total >= w.most || w.clients[c] >= w.mostPerClient {
		return false
	}
	w.total++
	w.clients[c]++
	return true
}

// end counts one less.
func (w *waiting) end(c client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total--
	if w.clients[c]--; w.clients[c] == 0 {
		delete(w.clients, c)
	}
}

// Waiting is how many readers wait for a change.
func (h *Handler) Waiting() int {
	h.waiting.mu.Lock()
	defer h.waiting.mu.Unlock()
	return h.waiting.total
}
