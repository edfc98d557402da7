package world

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// hook is something that is to be done once, just before the first write of a kind
// is applied.
type hook struct {
	before func(shims.Message) bool
	do     func() error
}

// Before has something done once, between plan and apply: just before the first
// write that match accepts is applied. What is done commits; see [World.Commit].
func (w *World) Before(match func(shims.Message) bool, do func() error) {
	w.log.hooks = append(w.log.hooks, hook{match, do})
}

// race does what comes between the plan of a message and its apply.
func (l *raftLog) race(m shims.Message) error {
	if err := l.runHooks(m); err != nil {
		return err
	}
	return l.world.refuseSome(m)
}

// runHooks does what a script has to do before the message is applied.
func (l *raftLog) runHooks(m shims.Message) error {
	for i, h := range l.hooks {
		if m != nil && h.before(m) {
			l.hooks = slices.Delete(l.hooks, i, i+1)
			l.world.racing = true
			defer func() { l.world.racing = false }()
			return h.do()
		}
	}
	return nil
}
