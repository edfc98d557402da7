// Package spawn is a fixture: steps that start goroutines and wait for them.
package spawn

import (
	"context"
	"sync"
	"time"
)

// T decides.
type T struct {
	mu   sync.Mutex
	cond *sync.Cond
	m    sync.Map
}

// Step is where the walk begins.
func (t *T) Step(now time.Time) (wakeAt time.Time) {
	go t.work() // want "a go statement starts a goroutine"
	var group sync.WaitGroup
	group.Go(t.work)                                            // want "WaitGroup\).Go starts"
	group.Wait()                                                // want "WaitGroup\).Wait waits"
	t.cond.Wait()                                               // want "Cond\).Wait waits"
	t.m.Range(func(_, _ any) bool { return true })              // want "Map\).Range visits a map in random order"
	ctx, cancel := context.WithTimeout(context.Background(), 1) // want "context.WithTimeout belongs to the package" "context.Background belongs to the package"
	_, _ = ctx, cancel
	return now
}

// work takes a lock, which is allowed: nothing holds it for long.
func (t *T) work() {
	t.mu.Lock()
	defer t.mu.Unlock()
}
