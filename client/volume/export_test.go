//race:skip one goroutine
package volume

// MarkAll makes the next step visit all volumes.
func (v *Volumes) MarkAll() {
	for _, r := range v.all {
		r.mark()
	}
}
