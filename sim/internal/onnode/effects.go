package onnode

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// maxEffects is how often a client may begin an effect for one subject in one second. A client that
// retries waits for 200 ms at least, and longer after each failure, so four retries fit into a second.
// What has succeeded is not repeated without a change. The most changes are those of the record of a
// volume while many allocations come and go: up to 16 in a second were observed. An effect takes a
// millisecond or two, so a loop without a wait begins hundreds.
const maxEffects = 50

// effect is an effect of a client for one subject.
type effect struct{ name, subject string }

// effects counts the effects that the client begins. It is part of a [Judge].
type effects struct {
	*facts
	// second is the second of the counts.
	second time.Time
	counts map[effect]int
}

// Began implements [machine.Observer].
func (j *Judge) Began(n *machine.Node, name, subject string) {
	j.now = n.Now()
	j.effects.began(effect{name, subject})
}

// began judges N12 when the client begins an effect.
func (e *effects) began(of effect) {
	if second := e.now.Truncate(time.Second); !second.Equal(e.second) {
		e.second = second
		clear(e.counts)
	}
	e.counts[of]++
	if e.counts[of] == maxEffects+1 {
		e.find("N12 too many effects", "", "the client has begun %s of %q more than %d times in a second", of.name, of.subject, maxEffects)
	}
}
