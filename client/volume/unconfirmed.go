package volume

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// A stage or a reference is unconfirmed if an earlier client has mounted it, by its record and by the
// mount table. That client may also have begun to unmount it, if its disk was full, and its call may
// still be in flight. A call that mounts again comes after that call, and has no effect on a mounted
// volume.

// Confirm says that a task of the allocation runs, so that no client has begun to unmount its
// volumes.
func (v *Volumes) Confirm(alloc cluster.AllocID) {
	for _, r := range v.byAlloc[alloc] {
		for _, f := range r.refs {
			if f.Alloc != alloc {
				continue
			}
			f.unconfirmed = false
			if s := r.stageOf(f.Usage); s != nil {
				s.unconfirmed = false
			}
		}
	}
}

// publishAgain publishes an unconfirmed volume again, and reports whether it did.
func publishAgain(r *runner, f *ref) bool {
	if !f.unconfirmed || f.Leaving {
		return false
	}
	f.unconfirmed = false
	r.enter(f, Publishing)
	r.mark()
	return true
}

// stageAgain stages a volume again before it is published.
func stageAgain(r *runner, s *stage) {
	s.Phase, s.unconfirmed = Staging, false
	r.touch()
	s.needs = r.version
}
