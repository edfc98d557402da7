package live

import "sync"

// line does things one after the other, in the order in which they were added, on a
// goroutine of its own.
type line struct {
	mu   sync.Mutex
	todo []func() // guarded by mu
	// wake has capacity 1 and is sent to without blocking. stop is closed by end, and
	// stopped when the goroutine has ended.
	wake, stop, stopped chan struct{}
}

// newLine starts a line.
func newLine() *line {
	l := &line{wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
	go l.run()
	return l
}

// add adds something to be done. It does not wait for it.
func (l *line) add(do func()) {
	l.mu.Lock()
	l.todo = append(l.todo, do)
	l.mu.Unlock()
	send(l.wake)
}

// end waits for what is being done, and leaves the rest undone.
func (l *line) end() {
	close(l.stop)
	<-l.stopped
}

func (l *line) run() {
	defer close(l.stopped)
	for {
		select {
		case <-l.stop:
			return
		default:
		}
		if do := l.next(); do != nil {
			do()
			continue
		}
		select {
		case <-l.stop:
		case <-l.wake:
		}
	}
}

func (l *line) next() (do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.todo) > 0 {
		do = l.todo[0]
		l.todo = l.todo[1:]
	}
	return do
}
