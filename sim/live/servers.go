package live

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// servers are what a scenario is played on. Those below the line are called by an
// errand of do and by nobody else.
type servers interface {
	// start has the scenario begin: they all begin with the same state, and one leads.
	start() error
	// propose asks whoever leads for a write, and the next leader again if need be.
	// reply is told what became of it.
	propose(s world.Source, m shims.Message, reply func(shims.Answer)) (taken bool)
	// truth is the newest state that any of them has.
	truth() *statestore.Snapshot
	// do has something done by one goroutine, one after the other.
	do(errand func() error)
	// end ends them and waits for all their goroutines. It returns the last state, which
	// all have then, or that is what went wrong.
	end() (*statestore.Snapshot, error)

	// ---

	// before has something done just before an entry of a kind is applied.
	before(kind scenario.EntryKind, do func() error) error
	// races says that this is being done.
	races() bool
	// place writes what no message could.
	place(func(*statestore.Txn) error) error
	// depose ends the leader's term.
	depose(world.Election) error
	// flap ends the term, as [scenario.LeaderFlap] has it, if that is armed.
	flap() error
	// pause has a server stand still; it is counted from 1, and zero is the leader.
	pause(number int, d time.Duration) error
	// restore has the leader restore a snapshot of its state.
	restore() error
	// forget has the leader's drainer begin anew.
	forget() error
	// calm undoes what faults have done, and cuts servers off for good, by their numbers
	// from 1: they stand still from then on, and never lead.
	calm(cut []int) error
}
