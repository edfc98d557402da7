package volume

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// ref is the state of a [RefRecord].
type ref struct {
	RefRecord
	attempt
	// target is where the volume is published.
	target string
	// requested: this or an earlier client has requested the claim, or the servers state that it exists.
	requested bool
	// unconfirmed: see unconfirmed.go.
	unconfirmed bool
	// claimed is the servers' answer to this client, or nil.
	claimed *storage.Claimed
	// last is what [Volumes.Status] depended on after the last change of the volume.
	last view
}

// attempt is the state of the next call for a stage or a reference.
type attempt struct {
	// needs is the version of the record that must be on disk before the call.
	needs    uint64
	failures int
	retryAt  time.Duration
	// refused: the call is not retried until [runner.retry].
	refused bool
	err     error
	holders []storage.Holder
}

// next starts the attempts of another call.
func (a *attempt) next(needs uint64) { *a = attempt{needs: needs} }

func (a *attempt) fail(v *Volumes, err error, holders []storage.Holder, final bool) {
	a.failures++
	a.retryAt, a.err, a.holders, a.refused = v.now+v.backoff(a.failures), err, holders, final
}

func (f *ref) request(k cluster.VolumeKey) storage.Request {
	return storage.Request{Alloc: f.Alloc, Volume: k, Usage: f.Usage, Options: f.Options}
}

// options are the mount options of the reference, or of the volume if the reference has none.
func (f *ref) options() *cluster.MountOptions {
	if f.Options == nil && f.claimed != nil {
		return f.claimed.Options
	}
	return f.Options
}

// receive adds the request of an allocation, and reports whether a call follows from it that was not
// due before.
func (r *runner) receive(q storage.Request) (changed bool) {
	f, added := r.add(q)
	return added || confirmToMount(r, f)
}

// add returns the reference of a request, and reports whether it is new.
func (r *runner) add(q storage.Request) (f *ref, added bool) {
	for _, f := range r.refs {
		if f.Alloc == q.Alloc && f.Usage == q.Usage {
			return f, false
		}
	}
	r.touch()
	f = newRef(r, RefRecord{Alloc: q.Alloc, Usage: q.Usage, Options: q.Options.Copy()})
	f.next(r.version)
	r.mark()
	return f, true
}

// newRef adds a reference.
func newRef(r *runner, rec RefRecord) *ref {
	f := &ref{RefRecord: rec, target: storage.TargetPath(r.v.options.Root, rec.Alloc, r.key, rec.Usage)}
	r.refs = append(r.refs, f)
	r.v.index(r, f.Alloc)
	return f
}

// adopt adds an allocation that may have the volume staged and published, and that has a claim if
// its tasks ran. If the volume has a record, adopt does nothing, because the record states it.
func (r *runner) adopt(q storage.Request, ran bool) {
	root := r.v.options.Root
	published := slices.Contains(r.v.options.Mounted, storage.TargetPath(root, q.Alloc, r.key, q.Usage))
	mounted := published || slices.Contains(r.v.options.Mounted, storage.StagePath(root, r.key, q.Usage))
	if r.recorded || !mounted && !ran {
		return
	}
	f, added := r.add(q)
	if !added {
		return
	}
	f.requested, f.unconfirmed = true, true
	if !mounted && q.Usage.Attachment == cluster.AttachFileSystem {
		return
	}
	f.Phase, f.Adopted = Publishing, !published && !ran
	if r.stageOf(q.Usage) == nil {
		s := &stage{StageRecord: StageRecord{Usage: q.Usage, Open: true, Adopted: true}}
		s.next(r.version)
		r.stages = append(r.stages, s)
	}
	r.mark()
}

// leave marks the references of an allocation as leaving, and reports whether this is new.
func (r *runner) leave(alloc cluster.AllocID) (changed bool) {
	for _, f := range r.refs {
		if f.Alloc == alloc && !f.Leaving {
			f.Leaving, changed = true, true
			r.touch()
			f.next(r.version)
			r.mark()
		}
	}
	return changed
}

// differs returns how the claim of a reference names another volume than the one that is on the
// node, or nil. The volume was registered again, with force, while it was mounted for others. The
// reference waits until nothing of that volume is left there.
func (f *ref) differs(r *runner) error {
	c := f.claimed
	if c == nil || f.Phase == Published || c.Plugin == r.plugin && c.ExternalID == r.externalID {
		return nil
	}
	return fmt.Errorf("the external id %q of the storage plugin %q is still on the node, and the claim is for %q of %q", r.externalID, r.plugin, c.ExternalID, c.Plugin)
}

// blocked returns the result of differs if the wait has no end: an allocation that stays has the other
// volume mounted.
func (f *ref) blocked(r *runner) error {
	if slices.ContainsFunc(r.refs, func(o *ref) bool { return o.Phase.mounted() && !o.Leaving }) {
		return f.differs(r)
	}
	return nil
}
