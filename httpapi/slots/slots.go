// Package slots bounds how many requests of one kind a server answers at a time. Begin with [New].
package slots

import "sync"

// Slots counts requests that stay open, such as blocking queries, so that they cannot take every connection
// and all memory, and one client cannot take all slots. It is safe for concurrent use.
type Slots struct {
	most, mostPerClient int

	mu sync.Mutex
	// total is the sum of clients; guarded by mu.
	total int
	// clients counts by client; none is zero; guarded by mu.
	clients map[Client]int
}

// Client is a client with slots: the hash of a token or of an address.
type Client [32]byte

// New returns slots: most for all clients together, and mostPerClient for each.
func New(most, mostPerClient int) *Slots {
	return &Slots{most: most, mostPerClient: mostPerClient, clients: map[Client]int{}}
}

// Take takes a slot, or reports that none is free for the client.
func (s *Slots) Take(c Client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= s.most || s.clients[c] >= s.mostPerClient {
		return false
	}
	s.total++
	s.clients[c]++
	return true
}

// Free frees a slot of the client.
func (s *Slots) Free(c Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.clients[c]--; s.clients[c] == 0 {
		delete(s.clients, c)
	}
}

// Taken returns the number of slots in use.
func (s *Slots) Taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}
