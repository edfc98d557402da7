package volume

import (
	"errors"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// runner decides the calls of one volume.
type runner struct {
	v   *Volumes
	key cluster.VolumeKey
	// plugin and externalID are empty until a claim is answered.
	plugin     cluster.PluginID
	externalID string
	stages     []*stage
	refs       []*ref
	calls      calls
	// recorded: the volume has a record of an earlier client.
	recorded bool
	saves
	visits
}

// stage is a usage that may be staged.
type stage struct {
	StageRecord
	attempt
	// unconfirmed is as in a ref.
	unconfirmed bool
}

// restore continues from a record.
func (r *runner) restore(rec *Record) {
	r.recorded, r.version, r.saved, r.tried = true, 1, 1, 1
	r.plugin, r.externalID = rec.Plugin, rec.ExternalID
	rebooted := rec.BootID != r.v.options.BootID
	for i := range rec.Refs {
		f := newRef(r, rec.Refs[i].copy())
		f.requested = true
		missing := f.Usage.Attachment == cluster.AttachFileSystem && !slices.Contains(r.v.options.Mounted, f.target)
		if f.Phase == Published && (rebooted || missing) {
			f.Phase = Publishing
			r.touch()
		}
		f.unconfirmed = true
	}
	for _, s := range rec.Stages {
		if s.Phase == Staged && !s.Skipped && !slices.Contains(r.v.options.Mounted, storage.StagePath(r.v.options.Root, r.key, s.Usage)) {
			// The record may be older than an unstage, if the disk was full. Some plugins mount
			// nothing at the stage path. In both cases another stage is right, because it has no
			// effect on a staged volume.
			s.Phase = Staging
			r.touch()
		}
		s.Open = s.Open || rebooted
		r.stages = append(r.stages, &stage{StageRecord: s.copy(), unconfirmed: s.Phase == Staged && !s.Skipped})
	}
	for _, f := range r.refs {
		f.needs = r.version
	}
	for _, s := range r.stages {
		s.needs = r.version
	}
	r.mark()
}

// record returns the record for the disk.
func (r *runner) record() *Record {
	rec := &Record{Volume: r.key, BootID: r.v.options.BootID, Plugin: r.plugin, ExternalID: r.externalID}
	for _, s := range r.stages {
		rec.Stages = append(rec.Stages, s.StageRecord.copy())
	}
	for _, f := range r.refs {
		rec.Refs = append(rec.Refs, f.copy())
	}
	return rec
}

func (r *runner) empty() bool { return len(r.refs) == 0 && len(r.stages) == 0 }

// gone reports whether nothing is left of the volume, also no record.
func (r *runner) gone() bool { return r.empty() && !r.saving && !r.calls.busy && r.saved == r.version }

// retry retries refused calls, and ends the backoff of other calls.
func (r *runner) retry() {
	for _, s := range r.stages {
		s.refused, s.retryAt = false, 0
	}
	for _, f := range r.refs {
		f.refused, f.retryAt = false, 0
	}
	r.mark()
}

// stageOf returns the stage of a usage, or nil.
func (r *runner) stageOf(u storage.Usage) *stage {
	for _, s := range r.stages {
		if s.Usage == u {
			return s
		}
	}
	return nil
}

// needed reports whether an allocation has published the usage or will publish it. A reference
// without a claim does not count: the servers may grant its claim only after this usage ends.
func (r *runner) needed(u storage.Usage) bool {
	return slices.ContainsFunc(r.refs, func(f *ref) bool {
		return f.Usage == u && (f.Phase.mounted() || f.Phase == Held && !f.Leaving && !r.stageOf(u).excludes(f) && f.differs(r) == nil)
	})
}

// excludes reports whether a reference that is not published cannot use the stage, because their
// mount options differ. The stage may be nil.
func (s *stage) excludes(f *ref) bool {
	return s != nil && !s.Open && !s.Skipped && f.Phase == Held && f.claimed != nil && !s.Options.Equal(f.options())
}

// off reports whether nothing of the volume is on the node.
func (r *runner) off() bool {
	return len(r.stages) == 0 && !slices.ContainsFunc(r.refs, func(f *ref) bool { return f.Phase.mounted() })
}

// identify takes over how the servers name the volume.
func (r *runner) identify(c *storage.Claimed) {
	if r.plugin != c.Plugin || r.externalID != c.ExternalID {
		r.plugin, r.externalID = c.Plugin, c.ExternalID
		r.touch()
	}
}

var errOtherOptions = errors.New("it is staged on the node with other mount options, for another allocation")

func (r *runner) step() {
	r.settle()
	r.save()
	if r.calls.busy {
		return
	}
	for _, f := range r.refs {
		// If the record of the volume is lost, the servers must name its plugin before a call can
		// undo it.
		if r.plugin == "" && f.Phase.mounted() && r.may(&f.attempt) && r.durable(&f.attempt) {
			r.calls.claim(f)
			return
		}
	}
	// Calls that undo come first, because others may wait for them.
	for _, f := range r.refs {
		if f.Leaving && f.Phase.mounted() && r.calls.unpublish(f) {
			return
		}
	}
	for _, s := range r.stages {
		if s.Phase == Unstaging && r.calls.unstage(s) {
			return
		}
	}
	for _, f := range r.refs {
		if f.Phase == Releasing && r.releasable(f) && r.calls.release(f) {
			return
		}
	}
	for _, f := range r.refs {
		if !f.Leaving && r.mount(f) {
			return
		}
	}
}

// settle makes the changes that do not need a call.
func (r *runner) settle() {
	r.v.drop(r, func(f *ref) bool { return f.Leaving && f.Phase == Claiming && !f.requested })
	for _, f := range r.refs {
		if f.Leaving && (f.Phase == Held || f.Phase == Claiming && !r.calls.busy) {
			r.enter(f, Releasing)
		}
	}
	for _, s := range r.stages {
		if s.Phase != Unstaging && !r.calls.busy && !r.needed(s.Usage) {
			r.enterStage(s, Unstaging)
		}
	}
	r.stages = slices.DeleteFunc(r.stages, func(s *stage) bool {
		skipped := s.Phase == Unstaging && (s.Skipped || r.up() && !r.v.plugins[r.plugin].Stages)
		if skipped {
			r.touch()
		}
		return skipped
	})
	if i := slices.IndexFunc(r.refs, func(f *ref) bool { return f.Phase == Held && f.claimed != nil }); i >= 0 && r.off() {
		r.identify(r.refs[i].claimed)
	}
}

// releasable reports whether the claim of an unpublished reference may be released: the usage is
// not staged, or another allocation that stays needs the stage and certainly has a claim. A
// reference that leaves does not count: its claim may already be released, by a client that could
// not write its last record.
func (r *runner) releasable(f *ref) bool {
	return r.stageOf(f.Usage) == nil || slices.ContainsFunc(r.refs, func(o *ref) bool {
		return o.Usage == f.Usage && !o.Leaving && (o.claimed != nil || o.Phase == Published) && !r.stageOf(f.Usage).excludes(o) && o.differs(r) == nil
	})
}

func (r *runner) enter(f *ref, p RefPhase) {
	f.Phase = p
	r.touch()
	f.next(r.version)
}

func (r *runner) enterStage(s *stage, p StagePhase) {
	s.Phase = p
	r.touch()
	s.next(r.version)
}

// may reports whether the next call of an attempt may be made now.
func (r *runner) may(a *attempt) bool { return !a.refused && r.v.reached(a.retryAt) }

// up reports whether the plugin answers.
func (r *runner) up() bool {
	_, up := r.v.plugins[r.plugin]
	return up
}

// mount starts the next call for an allocation that uses the volume, and reports whether it did.
func (r *runner) mount(f *ref) bool {
	switch {
	case f.Phase == Published || f.unconfirmed || !r.may(&f.attempt):
		return false
	case f.claimed == nil:
		return r.durable(&f.attempt) && r.calls.claim(f)
	case !r.up() || r.v.plugins[r.plugin].leaving || f.differs(r) != nil:
		return false
	}
	s := r.stageOf(f.Usage)
	if s == nil {
		s = &stage{StageRecord: StageRecord{Usage: f.Usage, Options: f.options().Copy()}}
		r.enterStage(s, Staging)
		r.stages = append(r.stages, s)
	}
	if s.Phase == Staging && !r.v.plugins[r.plugin].Stages { // also for an adopted stage
		s.Skipped = true
		r.enterStage(s, Staged)
	}
	if s.Open && s.Phase == Staging {
		if f.Phase == Held && slices.ContainsFunc(r.refs, func(o *ref) bool { return o.Usage == f.Usage && o.Phase.mounted() }) {
			return false // the published references decide the options
		}
		if f.Phase == Held && s.Adopted {
			r.enterStage(s, Unstaging) // it may be staged with other options
			return false
		}
		s.Open, s.Options = false, f.options().Copy()
		r.touch()
		s.needs = r.version
	}
	switch {
	case s.Phase == Unstaging || s.excludes(f):
		return false
	case s.Phase == Staged && s.unconfirmed:
		stageAgain(r, s)
		return false
	case s.Phase == Staging:
		return r.may(&s.attempt) && r.durable(&s.attempt) && r.calls.stage(s, f)
	case f.Phase == Held:
		r.enter(f, Publishing)
	}
	r.save()
	return r.durable(&f.attempt) && r.calls.publish(f, s)
}
