// Package drainer takes nodes out of service without hurting the services that run on them.
//
// It runs on the raft leader of a cluster scheduler. An operator sets the drain strategy of a node.
// The drainer marks the node's allocations at the pace that each job allows, stage by stage, and by
// the deadline. A scheduler stops and replaces marked allocations. The drainer ends the drain when
// its completion policy is met.
//
// # The parts
//
//	             ┌──────────────────────── Term.Step ────────────────────────┐
//	             │ node watcher ──▶ draining nodes ◀── deadline heap         │
//	 views and   │                   │ groups on    │ stage and deadline     │
//	 changes     │                   ▼ the nodes    │ marks, ends of drains  │
//	┌───────────▶│            job watcher           ▼                        │
//	│            │                   └───────────▶ outbox                    │
//	│            │         marks that budgets allow  │ rounds of entries     │
//	│            └───────────────────────────────────┼───────────────────────┘
//	│ StateReader                                    ▼ RaftApplier
//	store ◀── FSM, with rules.Recheck ◀── raft log ◀── shims
//
// The node watcher finds nodes whose drain began, changed or ended. The deadline heap reports nodes
// whose deadline has passed. Each draining node is planned: which allocations leave together with
// their stage or at the deadline, and whether its drain may end. The job watcher plans the groups
// with allocations on draining nodes: which allocations leave next within the budget. The outbox
// cuts all of this into entries and begins their writes. The FSM of every server checks an entry
// again by the same rules and writes the rows. The store reports the change, and the next step
// begins with it.
//
// [NodeDrainer] runs a [Term] in a goroutine while the server leads. A scheduler with a loop or a
// clock of its own steps a Term itself. Three factories of [NodeDrainerConfig] build the node
// watcher, the job watcher and the deadline heap, so that a program can replace or observe one of
// them.
//
// This package imports no store and no raft. It reads the store through [StateReader] and changes the
// cluster only through [RaftApplier]. Package shims has both for hashicorp/raft. Package rules holds
// all decisions as pure functions, and package lifecycle the changes of a drain's rows: an FSM
// imports these two. An embedder needs NodeDrainer or Term, NodeDrainerConfig, StateReader, [Feed],
// [Changes], RaftApplier, [Answer] and [Reply]. The other types are for a component of one's own.
//
// # Life of a drain
//
//	strategy set ──▶ consumers ──▶ system ──▶ storage plugins ──▶ complete
//	                    │ deadline or force: the rest is marked, the order
//	                    │ stays, and each stage is waited for no longer than
//	                    ▼ its stop time and a margin
//	               deadline reached · forced
//
// At any time an operator may change the strategy. This moves the drain's revision. An operator may
// also cancel the drain, which withdraws its marks, or delete the node.
//
// An operator may pause the drain, or all drains at once, and resume them. A paused drain marks only
// allocations whose job or group is gone, and does not end. Its deadline does not come: the resume
// moves it by the time of the pause. Pause and resume of the drain move its revision, and so does the
// end of a pause of all that held it. Forced drains and those past their deadline are not paused.
//
// # Budget
//
// A group has room for
//
//	room = healthy − (count − max_parallel)
//
// paced marks over all draining nodes at once. Overdue allocations, and those that were never
// healthy, leave first and use no room. So do those that were healthy and have been unhealthy for the
// healthy deadline of their group. Until then they are held, because an outage may end.
//
// A group with a max_surge, or each group of a drain with one, replaces before it stops. The drainer
// requests a replacement. The scheduler places it beside the allocation as a standby, which counts
// for no budget. The drainer marks the allocation when the standby is healthy, and the standby is an
// ordinary allocation from the entry of the mark on. Such a mark needs no room. At most max_surge
// allocations of a group have a requested replacement, and at most max_parallel of them are marked
// and not stopped by a plan.
//
// # Guarantees
//
//	G1  budget   A paced mark leaves, in the state in which it is applied, at
//	             least count − max_parallel healthy allocations in its group. In
//	             a group with a max_surge the replacement of the allocation is
//	             healthy, and the mark leaves as many healthy ones as before. A
//	             mark of another class is applied only if that state still gives
//	             the allocation this class.
//	G2  cause    Only allocations on a draining node are marked. Nothing planned
//	             for another drain is applied. A deadline, forced or stage mark
//	             or a completion planned for an older revision is not applied.
//	             A paused drain marks only what its job no longer has.
//	G3  order    Consumers, then system allocations, then storage plugins, then
//	             the end. Deadline and force drop the budget, not the order.
//	G4  end      A drain with a deadline ends by the time that its report
//	             names (EndsBy). A drain without one ends as soon as everything
//	             that had to leave has left, and the data that can move has
//	             moved. The time of a pause does not count.
//	G5  truth    The FSM checks the end of a drain again when it applies it. Each
//	             drain has one outcome. A drain is complete only if nothing
//	             that had to leave is lost without confirmation: its client
//	             reported the end, or time or an operator confirmed it.
//	G6  nothing  The items of a failed write are planned again. One bad item
//	    lost     never fails its batch. A mark always has its evaluation.
//	G7  from     A new leader, or a drainer that has lost its memory, reaches
//	    state    the same end from the state alone.
//	G8  reasons  Every allocation that is still on a draining node has exactly
//	             one reason, and the reason is true.
//	G9  bounds   Ids and bytes per entry, entries in flight, and state queries
//	             per second have bounds; see [NodeDrainerConfig].
//	G10 quiet    While nothing changes, the drainer writes nothing and does not
//	             wake before the time that its last step returned.
//	G11 replicas rules.Recheck and rules.RecheckCompletions read a view and an
//	             entry and nothing else: the same log gives the same state.
//	G12 cost     Work follows what changed, not what exists.
//
// # What is not promised
//
// A drain without a deadline waits forever for batch work that does not end, for a group below its
// budget, and for a client that does not report. The reasons in its report show this. After the
// deadline a drain may end while tasks still run: its record counts them as unconfirmed until they
// end. A drain of a node that cannot be reached ends unconfirmed, and its tasks may still run. With
// rules.PluginsAfterStop a drain with storage plugins has no bound. Where the clocks of leaders
// differ, a deadline is as exact as the leader's clock. While Status.Stalled is set, EndsBy
// stays at the end that followed when the stall began: the drain keeps it only if the stall ends in
// time.
//
// # What an embedder must do
//
// This is the full contract. docs/embedding.md is the tutorial, and examples/scheduler a scheduler
// that meets it. Package drainertest tests a store (TestStore, and TestVolumes if it has volumes), a
// state machine (TestFSM), an applier (TestApplier), and a scheduler that replaces before it stops
// (TestSurge); the duties that it does not test are marked with a star. Package witness judges a whole
// scheduler by the log of its drains.
//
// The FSM checks every entry with [rules.Recheck] or [rules.RecheckCompletions], in the transaction
// that applies the entry. It applies what they return and nothing else. Without this, G1, G2, G3
// and G5 hold only until something changes between plan and apply.
//
// The FSM writes an accepted mark with lifecycle.ApplyMark, and in the same transaction the
// evaluations that Recheck returned. A new evaluation gets the entry's index as CreateIndex.
// Without this, G6 and the outcomes are lost, and the scheduler places batch work again that a
// deadline stopped.
//
// The FSM changes drains with package lifecycle only:
//
//	a request starts a drain    StartDrain. The proposer chose the id. After an
//	                            error the entry changes nothing. NoteEligibility,
//	                            if a cancel can undo the drain. *
//	a request changes a drain   UpdateDrain. The revision moves.
//	a request pauses a drain    PauseDrain. The revision moves.
//	a pause ends                ResumeDrain. The revision and the deadline move.
//	                            Nothing, if the pause of all ends and the
//	                            drain has a pause of its own. *
//	a request is repeated       Nothing, if a running or recorded drain of the
//	                            node has its key (cluster.Drain.HasKey).
//	a request cancels a drain   CancelDrain. Write the node, the withdrawn rows
//	                            and the record. Write an evaluation of each job
//	                            with a withdrawn mark * or request.
//	a drain ends                EndDrain. Write the node and the record. The
//	                            node stays ineligible.
//	a node is deleted           NodeGone. Write the record. Do not change the
//	                            node's allocations. *
//	a job is purged             Stop what runs, and keep its row until the client
//	                            reports the end. Keep lost rows. An FSM that deletes
//	                            them calls CountPurged, but a drain that begins
//	                            later does not count them. *
//	a client judges health      DeploymentStatus.Judge of package cluster, with
//	                            the proposer's time of the entry, not with a
//	                            time of the client. *
//	an end is confirmed         Confirm, for each record of the node: a client
//	                            reports the end of an allocation, or
//	                            ConfirmedAt is set. It needs CreateIndex. *
//	an operator confirms        ConfirmByOperator. Set ConfirmedAt of the lost
//	                            rows that the record counts. Other records of
//	                            the node: Confirm, then AttributeConfirmation. *
//	a node registers again      Keep Drain, LastDrain, eligibility and events. *
//
// The leader confirms what time alone confirms: it writes an entry for the nodes of
// lifecycle.AwaitedStops whose time has come. *
//
// Without this, marked allocations leave after a cancel, deadlines move, and the FSM applies marks
// that were planned for an older strategy.
//
// The FSM reads no clock and no randomness. Every entry moves the state's index, even if all of it
// is refused, and all rows of an entry become visible at once. Without this, replicas differ, and
// the drainer waits for an index that the store never reaches.
//
// The store answers from one state that never changes, in the order that [rules.View] gives. In a
// cluster with volumes its views implement [rules.VolumeView]. Without this, a drain that ignores
// system jobs stops the storage plugins that these jobs still use. If all drains can be paused at
// once, its views implement [rules.PauseView], and the begin and the end of the pause are a change
// of all draining nodes. The store publishes every change
// that [Feed] names after the change is visible, without blocking. When the store is replaced, it
// wakes the subscriber of every feed and sets Abandoned, at each Take from then on. It does so for
// feeds that are opened later too. Without this, drains stall.
//
// The applier returns at once, answers every queued write exactly once, with the index of that
// write, or for a barrier with the index of the state, answers Unknown when in doubt, has a time
// limit, and never calls the drainer: [RaftApplier] has the details. Without this, drains stall, and a
// wrong Rejected breaks G2.
//
// The server calls [NodeDrainer.SetEnabled] on every change of leadership, and again with the new
// store after each restore of a snapshot. Without this, no node drains, or the drainer decides from
// an outdated state. *
//
// The scheduler places nothing on a draining node, and checks this again when a plan is applied.
// When it applies a plan that migrates an allocation, it refuses the stop if the mark was
// withdrawn. Without this, new allocations keep a drain from ending, which the log and
// Status.Placed show, and cancelled drains still move allocations. The scheduler stops marked
// allocations whether or not it can place their replacements, and reports missing capacity with a
// blocked evaluation and its Queued counts. Without this, reasons are wrong. *
//
// A scheduler that replaces before it stops has views that implement [rules.SurgeView]. It places one
// standby allocation beside each one for which cluster.SurgeRequested holds, replaces a standby that
// ends by a standby, places nothing when the original is marked, and stops the standby when the
// request is withdrawn. Its FSM writes the rows of lifecycle.EndStandby at each write of an
// allocation. Without the view max_surge has no effect, which the log shows. Without the rest,
// drains wait for replacements, or take healthy allocations from a group.
//
// The client reports the end of an allocation when its tasks have ended. Without this, a drain
// does not end before its deadline. It reports a health verdict for every service allocation by
// its group's healthy deadline. Without this, allocations move as overdue. *
//
// # The loop rule
//
// Decisions are made in [Term.Step] and the functions that it calls. They do not block, sleep,
// start goroutines or read a clock. One goroutine calls Step and otherwise only waits. Every step
// derives its decisions from the newest snapshot. Wake-ups, feeds and timers only name what
// to read and when.
//
// A write begins in one step and is answered in a later one: applied, rejected, or unknown. While a
// write is in flight, the drainer plans nothing. After an unknown answer, and at the beginning of a
// term, it plans nothing until a barrier is applied.
package drainer
