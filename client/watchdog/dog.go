package watchdog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/client/internal/bootclock"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
)

// dog is a watchdog: it waits, steps its Watch, and acts.
type dog struct {
	dir      string
	disk     *disk
	bootID   string
	groups   cgroup.Hierarchies
	logger   *slog.Logger
	messages *json.Decoder
	watch    guard.Watch
	notes    map[cluster.AllocID]*guard.Stopped
	// ended receives acts whose control groups have become empty.
	ended chan guard.Act
}

// read reads the next message. Any error is the end of the client: its pipe ends, perhaps in the
// middle of a message.
func (d *dog) read() (message, error) {
	var m message
	if err := d.messages.Decode(&m); err != nil {
		return m, err
	}
	return m, m.check()
}

// listen passes messages to the loop, and closes the channel at the end of the client.
func (d *dog) listen(to chan<- message) {
	defer close(to)
	for {
		m, err := d.read()
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				d.logger.Error("the client sent a message that this watchdog does not understand; the watchdog treats this as the end of the client", "error", err)
			}
			return
		}
		to <- m
	}
}

// loop returns when the client is gone and nothing is left to guard. Its goroutines end with the
// process.
func (d *dog) loop() error {
	ring, err := bootclock.NewAlarm()
	if err != nil {
		return err
	}
	defer ring.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	d.ended, d.notes = make(chan guard.Act), map[cluster.AllocID]*guard.Stopped{}
	messages := make(chan message)
	go d.listen(messages)
	gone := false
	for {
		wakeAt := d.step(ctx)
		if gone && d.watch.Over() {
			return nil
		}
		if err := ring.Set(wakeAt); err != nil {
			return fmt.Errorf("setting a timer: %w", err)
		}
		select {
		case m, open := <-messages:
			if open {
				m.apply(&d.watch)
				continue
			}
			gone, messages = true, nil
			d.watch.Gone()
			d.logger.Info("the client has ended")
		case a := <-d.ended:
			if err := d.act(ctx, a); err != nil {
				d.logger.Error("the control group of a task could not be removed; the watchdog retries", "alloc", string(a.Alloc), "task", a.Task.Name, "error", err)
			}
		case <-ring.Rings():
		}
	}
}

// step acts until nothing is due.
func (d *dog) step(ctx context.Context) (wakeAt time.Duration) {
	for {
		acts, wakeAt := d.watch.Step(bootclock.Now())
		if len(acts) == 0 {
			return wakeAt
		}
		for _, a := range acts {
			if err := d.act(ctx, a); err != nil {
				d.logger.Error("a task could not be stopped; the watchdog retries", "alloc", string(a.Alloc), "task", a.Task.Name, "error", err)
			}
		}
	}
}

// act signals or kills a task. If the task has no process, act removes its control group. A driver
// that still works on a start, which the client has requested before, then cannot finish it.
func (d *dog) act(ctx context.Context, a guard.Act) error {
	group, err := d.groups.Open(a.Task.Group)
	if err != nil {
		return err
	}
	populated, err := group.Populated()
	if err != nil {
		return err
	}
	if !populated {
		if err := group.Remove(ctx); err != nil {
			return err
		}
		d.watch.Ended(a.Alloc, a.Task.Name)
		return nil
	}
	d.note(a)
	if a.Kill {
		d.logger.Info("the watchdog kills a task", "alloc", string(a.Alloc), "task", a.Task.Name)
		return group.Kill(ctx)
	}
	d.logger.Info("no client has reached a server for too long; the watchdog sends a task its kill signal", "alloc", string(a.Alloc), "task", a.Task.Name, "after", a.After)
	go func() { // it ends with the task, or with this process
		if err := group.Wait(ctx); err != nil {
			d.logger.Error("the watchdog cannot wait for the end of a task", "alloc", string(a.Alloc), "task", a.Task.Name, "error", err)
			return
		}
		select {
		case d.ended <- a:
		case <-ctx.Done():
		}
	}()
	return group.Signal(killSignal(a.Task))
}

func killSignal(t guard.Task) unix.Signal {
	if s := unix.SignalNum(t.Signal); s != 0 {
		return s
	}
	return unix.SIGINT
}

// note writes for the next client, or for a client that was frozen, that a task is stopped.
func (d *dog) note(a guard.Act) {
	s := d.notes[a.Alloc]
	if s == nil {
		s = &guard.Stopped{Alloc: a.Alloc, BootID: d.bootID, After: a.After, Signals: map[string]time.Duration{}}
		d.notes[a.Alloc] = s
	}
	if _, noted := s.Signals[a.Task.Name]; noted {
		return
	}
	s.Signals[a.Task.Name] = bootclock.Now()
	content, err := json.Marshal(s)
	if err == nil {
		err = d.disk.await(func() error { return writeNote(d.dir, a.Alloc, content) })
	}
	if err != nil {
		d.logger.Error("the note on a stopped allocation could not be written; no client can report why it stopped", "alloc", string(a.Alloc), "error", err)
	}
}
