package volume

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// A reference is unconfirmed if an earlier client has created it: by its record, by the mount table
// or by a claim. If the disk of that client was full, its last records may be old. It may have
// started to unmount the volume, and its call may still be in flight. It may even have reported the
// end of the allocation, and this report may still be in flight and free the claim. So an
// unconfirmed volume is unmounted if its allocation ends, and it is not mounted before one of two
// events:
//
//   - A task of the allocation was observed running. So the earlier client has not started to unmount.
//   - A task of the allocation will start. A published volume is then published again. This call
//     comes after a call in flight, and has no effect on a mounted volume.
//
// An unconfirmed stage is staged again before it is used, for the same reason.

// Confirm states that a task of the allocation runs, so that no client has started to unmount its
// volumes. Volumes that the mount table does not show are then mounted again.
func (v *Volumes) Confirm(alloc cluster.AllocID) {
	for _, r := range v.byAlloc[alloc] {
		for _, f := range r.refs {
			if f.Alloc != alloc || f.Leaving {
				continue
			}
			f.unconfirmed = false
			if s := r.stageOf(f.Usage); s != nil {
				s.unconfirmed = false
			}
			r.mark()
		}
	}
}

// confirmToMount confirms a reference for a task that will start, and reports whether a call
// follows from it.
func confirmToMount(r *runner, f *ref) bool {
	if !f.unconfirmed || f.Leaving {
		return false
	}
	f.unconfirmed = false
	if f.Phase == Published {
		r.enter(f, Publishing)
	}
	r.mark()
	return true
}

// stageAgain stages a volume again before it is published.
func stageAgain(r *runner, s *stage) {
	s.Phase, s.unconfirmed = Staging, false
	r.touch()
	s.needs = r.version
}
