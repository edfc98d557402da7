// Package drainer takes nodes out of service without hurting what runs on them.
//
// It runs on the raft leader of a cluster scheduler. An operator sets a node's
// drain strategy. The drainer marks the node's allocations at the pace that each
// job allows, stage by stage, and by the deadline. A scheduler stops and replaces
// what is marked. The drainer ends the drain when its promise is kept. It reads a
// state store through [StateReader] and changes the cluster only through raft, by
// [RaftApplier]. It imports no store and no raft. What it decides is in package
// rules, which an FSM imports without the goroutine.
//
// # Life of a drain
//
//	strategy set ──▶ consumers ──▶ system ──▶ storage plugins ──▶ complete
//	                    │ deadline or force: what is left is marked, the order
//	                    │ stays, and each stage is waited for no longer than
//	                    ▼ its stop time and a margin
//	               deadline reached · forced
//
// At any moment an operator may change the strategy, which moves the drain's
// revision, or cancel it, which withdraws its marks; the node may be deleted.
//
// # Budget
//
// A group has room for
//
//	room = healthy − (count − max_parallel)
//
// paced marks over all draining nodes at once. What is unhealthy or overdue leaves
// first and takes no room.
//
// # Guarantees
//
//	G1  budget   A paced mark leaves, in the state in which it is applied, at
//	             least count − max_parallel healthy allocations in its group. A
//	             mark of another class is applied only if its class holds there.
//	G2  cause    Only allocations on a draining node are marked. Nothing planned
//	             for another drain is applied, nor a deadline, forced or stage
//	             mark or a completion planned against an older revision.
//	G3  order    Consumers, then system allocations, then storage plugins, then
//	             the end. Deadline and force drop the budget, not the order.
//	G4  end      A drain with a deadline ends by the time that its report
//	             names (EndsBy). One without ends as soon as nothing that had
//	             to leave is left.
//	G5  truth    An end is judged again when it is applied. Each drain has one
//	             outcome.
//	G6  nothing  What a failed write wanted is planned again. One bad item never
//	    lost     fails its batch. A mark is never without its evaluation.
//	G7  from     A new leader, or a drainer that has lost all it remembered,
//	    state    reaches the same end from the state alone.
//	G8  reasons  Every allocation still on a draining node has exactly one
//	             reason, which is true.
//	G9  bounds   Ids and bytes per entry, entries in flight, and state queries
//	             per second have bounds; see [NodeDrainerConfig].
//	G10 quiet    With nothing changing, nothing is written and nothing wakes
//	             before the next stated time.
//	G11 replicas rules.Recheck and rules.RecheckCompletions read a view and an
//	             entry and nothing else: the same log gives the same state.
//	G12 cost     Work follows what changed, not what exists.
//
// # What is not promised
//
// A drain without a deadline waits for ever for batch work that does not end, for
// a group below its budget, and for a client that does not report; it says so.
// From the deadline on, the end does not mean that every task has stopped: the
// record says how many had not. With rules.PluginsAfterStop a drain with plugins
// has no bound. Where leaders' clocks differ, a deadline is as exact as the leader's.
//
// # What an embedder must do
//
// docs/embedding.md lists the obligations with the function that does each. Package
// drainertest tests a store, a state machine and an applier. Package rowview is a
// view over plain rows.
//
// The FSM calls [rules.Recheck] and [rules.RecheckCompletions] in the transaction
// that applies an entry, and applies what they return and nothing else. Without it
// G1, G2, G3 and G5 hold only until something changes between plan and apply.
//
// The FSM writes marks as lifecycle.ApplyMark does, in one transaction with their
// evaluations. Without it G6 and the outcomes are lost, and batch work that a deadline
// stops is placed again.
//
// The FSM starts, updates, cancels and ends drains as package lifecycle does. Without
// it what was marked leaves after a cancel, deadlines move, and marks that were planned
// against an older strategy are applied.
//
// The scheduler places nothing on a node that drains, checks so again when a plan
// is applied, and refuses the stop of a migrating allocation whose mark is gone
// by then. Without it drains chase what lands on their nodes, and cancelled
// drains still move things. It stops marked allocations whether or not it can
// place their replacements, and says with a blocked evaluation what it could not
// place. Without that, reasons are wrong.
//
// The client reports the end of an allocation when its tasks have ended, and a
// health verdict for every service allocation by its group's healthy deadline.
// Without the first, drains do not end before the deadline; without the second,
// allocations are moved as overdue.
//
// The store publishes every change that [Feed] names, once it is visible. Without it
// drains stall.
//
// The applier answers every write that it queued once, as [RaftApplier] says. Without
// it drains stall.
//
// The server calls [NodeDrainer.SetEnabled] on every change of leadership and
// after each restore of a snapshot. Without it nothing drains, or from a state
// that is no longer true.
//
// # The loop rule
//
// Decisions are made in [Term.Step] and what it calls. They neither block, sleep,
// start goroutines nor read a clock. Around them stands one goroutine that only
// waits. Every step derives what to do from the newest snapshot. Wake-ups, feeds and
// timers say where and when to look, never what is true.
//
// Writes begin in one step and are answered in a later one: applied, rejected, or
// unknown. While a write is in flight nothing is planned. After an unknown answer,
// and at the beginning of a term, nothing is planned before a barrier.
package drainer
