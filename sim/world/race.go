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

// race does what comes between the plan of a message and its apply; nil is a barrier,
// before which nothing comes.
func (l *raftLog) race(m shims.Message) error {
	if m == nil {
		return nil
	}
	if err := l.runHooks(m); err != nil {
		return err
	}
	return l.world.refuseSome(m)
}

// runHooks does what a script has to do before the message is applied, in the order
// in which it was asked for.
func (l *raftLog) runHooks(m shims.Message) error {
	var due []hook
	l.hooks = slices.DeleteFunc(l.hooks, func(h hook) bool {
		if !h.before(m) {
			return false
		}
		due = append(due, h)
		return true
	})
	w := l.world
	w.racing++
	defer func() { w.racing-- }()
	for _, h := range due {
		if err := h.do(); err != nil {
			return err
		}
	}
	return nil
}
