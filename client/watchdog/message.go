package watchdog

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// message is what a client sends to its watchdog. Each field that is set counts.
type message struct {
	// Contact is when an answered heartbeat was sent, in nanoseconds of the boot clock.
	Contact time.Duration `json:",omitempty"`
	// TTL belongs to Contact.
	TTL    time.Duration   `json:",omitempty"`
	Put    *guard.Guard    `json:",omitempty"`
	Remove cluster.AllocID `json:",omitempty"`
	// Begin: the watchdog has all guards, and replaces an earlier watchdog now.
	Begin bool `json:",omitempty"`
}

// check returns an error for a message that no client sends.
func (m message) check() error {
	if m.Contact < 0 || m.TTL < 0 {
		return errors.New("the time of the heartbeat or its TTL is negative")
	}
	g := m.Put
	if g == nil {
		return nil
	}
	if g.Alloc == "" || g.After <= 0 || g.Delay < 0 || g.StopTime < 0 {
		return fmt.Errorf("the guard of allocation %q has no name or no positive time", g.Alloc)
	}
	for _, t := range g.Tasks {
		if t.Phase > cluster.StopPoststop || t.ShutdownDelay < 0 || t.KillTimeout < 0 {
			return fmt.Errorf("the guard of task %q of allocation %q has a negative time or an unknown phase", t.Name, g.Alloc)
		}
	}
	return nil
}

// apply changes what is watched.
func (m message) apply(w *guard.Watch) {
	w.Contact(guard.Contact{Sent: m.Contact, TTL: m.TTL})
	if m.Put != nil {
		w.Put(*m.Put)
	}
	if m.Remove != "" {
		w.Remove(m.Remove)
	}
}
