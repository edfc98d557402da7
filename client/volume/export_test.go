package volume

import "slices"

// AnyMarked reports whether the next step visits a volume that nothing happens to.
func (v *Volumes) AnyMarked() bool {
	return slices.ContainsFunc(v.all, func(r *runner) bool { return r.marked })
}

// MarkAll makes the next step visit all volumes.
func (v *Volumes) MarkAll() {
	for _, r := range v.all {
		r.mark()
	}
}
