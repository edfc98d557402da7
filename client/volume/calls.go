package volume

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// calls makes the calls of one volume, to the servers and to the storage plugin. There is one at a
// time.
type calls struct {
	volume *runner
	// busy: a call is in flight.
	busy bool
}

// claim requests the claim from the servers.
func (c *calls) claim(f *ref) bool {
	r := c.volume
	c.busy, f.requested = true, true
	take := func(got storage.Claimed, err error) {
		c.busy = false
		switch {
		case err != nil:
			f.fail(r.v, err, nil, storage.ClassOf(err) == storage.Refused && !f.Leaving)
		default:
			f.claimed = &got
			if r.plugin == "" || r.off() {
				r.identify(&got)
			}
			f.next(f.needs)
			if f.Phase == Claiming || f.Adopted {
				f.Adopted = false
				r.enter(f, Held)
			}
		}
	}
	post := answer(r, func(a claimAnswer) { take(a.claimed, a.err) })
	r.v.options.Shell.Claim(f.request(r.key), func(got storage.Claimed, err error) { post(claimAnswer{got, err}) })
	return true
}

type claimAnswer struct {
	claimed storage.Claimed
	err     error
}

func (c *calls) stage(s *stage, f *ref) bool {
	return c.call(storage.Stage, f.request(c.volume.key), f.claimed, &s.attempt, func() { c.volume.enterStage(s, Staged) })
}

func (c *calls) publish(f *ref, s *stage) bool {
	r := c.volume
	return c.call(storage.Publish, f.request(r.key), f.claimed, &f.attempt, func() { r.enter(f, Published) }, func(err error) {
		if f.Leaving {
			f.next(f.needs) // the allocation leaves, so its next call is another one
		}
		if storage.ClassOf(err) == storage.NotStaged && s.Phase == Staged && !s.Skipped {
			stageAgain(r, s)
		}
	})
}

func (c *calls) unpublish(f *ref) bool {
	r := c.volume
	return c.undoable(&f.attempt) && c.call(storage.Unpublish, f.request(r.key), nil, &f.attempt, func() {
		r.v.unmounted(f.target)
		r.enter(f, Releasing)
	})
}

func (c *calls) unstage(s *stage) bool {
	r := c.volume
	return c.undoable(&s.attempt) && c.call(storage.Unstage, storage.Request{Volume: r.key, Usage: s.Usage}, nil, &s.attempt, func() {
		r.v.unmounted(storage.StagePath(r.v.options.Root, r.key, s.Usage))
		r.stages = slices.DeleteFunc(r.stages, func(other *stage) bool { return other == s })
		r.touch()
	})
}

// undoable reports whether a call that undoes may be made now. A full disk does not prevent it.
func (c *calls) undoable(a *attempt) bool {
	return c.volume.up() && c.volume.may(a) && c.volume.tried >= a.needs
}

func (c *calls) release(f *ref) bool {
	r := c.volume
	if !r.may(&f.attempt) || r.tried < f.needs {
		return false
	}
	c.busy = true
	r.v.options.Shell.Release(f.request(r.key), answer(r, func(err error) {
		c.busy = false
		if err != nil {
			f.fail(r.v, err, nil, false)
			return
		}
		r.v.drop(r, func(other *ref) bool { return other == f })
	}))
	return true
}

// call makes a call to the plugin.
func (c *calls) call(verb storage.Verb, q storage.Request, claimed *storage.Claimed, a *attempt, done func(), failed ...func(error)) bool {
	r := c.volume
	c.busy = true
	s := r.stageOf(q.Usage)
	request := storage.Call{Verb: verb, Volume: r.key, Plugin: r.plugin, ExternalID: r.externalID, Request: q, Staged: s != nil && !s.Skipped}
	if claimed != nil {
		request.Claimed = *claimed
	} else {
		request.Confidential = confidential(r.refs, s)
	}
	undoes := verb == storage.Unpublish || verb == storage.Unstage
	r.v.options.Shell.Call(request, answer(r, func(got storage.Result) {
		c.busy = false
		if got.Err == nil {
			done()
			return
		}
		class := storage.ClassOf(got.Err)
		a.fail(r.v, got.Err, got.Holders, class == storage.Unimplemented || class == storage.Refused && !undoes)
		r.v.options.Logger.Warn("a call of a storage plugin failed", "volume", r.key.String(), "plugin", r.plugin, "call", verb.String(), "alloc", q.Alloc, "error", got.Err)
		for _, f := range failed {
			f(got.Err)
		}
	}))
	return true
}

// confidential returns the options and secrets with which a volume was mounted, as far as its
// references and the stage have them.
func confidential(refs []*ref, s *stage) (c storage.Confidential) {
	for _, f := range refs {
		if f.claimed != nil { // each claim has those of the volume
			c = storage.Confidential{Options: f.claimed.Options, Secrets: f.claimed.Secrets}
		}
	}
	if s != nil && s.Options != nil {
		c.Options = s.Options.Copy()
	}
	return c
}
