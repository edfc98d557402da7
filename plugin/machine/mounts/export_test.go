package mounts

// Hold keeps a search from a pass until the returned function is called, which also returns how many paths the
// next pass has.
func Hold(s *Search) (release func() (paths int)) {
	s.turn <- struct{}{}
	return func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		<-s.turn
		return len(s.next.found)
	}
}

// Waits reports whether a search has paths for which no pass has begun.
func Waits(s *Search) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next != nil
}
