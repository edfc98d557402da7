package world

import (
	"slices"
	"time"
)

// Calm ends all faults: those that are armed, and what has been done and can be
// undone. What clients were born with stays.
func (w *World) Calm() error {
	w.faults.armed = nil
	for _, s := range w.servers {
		s.pausedUntil = time.Time{}
	}
	for _, l := range slices.Clone(w.deposed) {
		l.stepDown()
	}
	for len(w.faults.ends) > 0 {
		if err := w.faults.end(w.faults.ends[0]); err != nil {
			return err
		}
	}
	return nil
}

// undo is how the effect of a fault ends.
type undo struct {
	id int
	do func() error
}

// after has something undone at a time, or when the faults end if that is sooner.
func (w *World) after(d time.Duration, do func() error) {
	w.ids.undos++
	u := undo{id: w.ids.undos, do: do}
	w.faults.ends = append(w.faults.ends, u)
	w.At(w.now.Add(d), func() error { return w.faults.end(u) })
}

// end undoes something, once.
func (f *faults) end(u undo) error {
	i := slices.IndexFunc(f.ends, func(o undo) bool { return o.id == u.id })
	if i < 0 {
		return nil
	}
	f.ends = slices.Delete(f.ends, i, i+1)
	return u.do()
}
