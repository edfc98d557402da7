package live

import "sync"

// worker runs tasks one after the other, in the order in which they were added, on its own
// goroutine.
type worker struct {
	mu    sync.Mutex
	tasks []func() // guarded by mu
	// wake has capacity 1; add sends to it without blocking. end closes stop, and the
	// goroutine closes stopped.
	wake, stop, stopped chan struct{}
}

func startWorker() *worker {
	w := &worker{wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
	go w.run()
	return w
}

// add adds a task. It does not wait for it.
func (w *worker) add(task func()) {
	w.mu.Lock()
	w.tasks = append(w.tasks, task)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}

// end waits for the running task, and discards the others.
func (w *worker) end() {
	close(w.stop)
	<-w.stopped
}

func (w *worker) run() {
	defer close(w.stopped)
	for {
		select {
		case <-w.stop:
			return
		default:
		}
		if task := w.next(); task != nil {
			task()
			continue
		}
		select {
		case <-w.stop:
		case <-w.wake:
		}
	}
}

func (w *worker) next() (task func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tasks) > 0 {
		task = w.tasks[0]
		w.tasks = w.tasks[1:]
	}
	return task
}
