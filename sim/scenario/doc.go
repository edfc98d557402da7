// Package scenario is the language of simulations: .drain files, which say what a
// cluster begins with, what happens in it and when, and what is to come of it. This
// is its manual.
//
//	# Both of a service's allocations are on draining nodes. One budget has to hold
//	# over both.
//
//	node n1..n3
//
//	job web count=2 max-parallel=1
//	alloc web on=n1,n2
//
//	at 0s drain n1,n2 deadline=10m
//	----
//	0s      drain n1: deadline 10m0s
//	...
//	----
//	n1 complete
//	...
//
// [Parse] reads a file, [Print] writes one in the canonical form, [Rewrite] puts
// other expectations into one and leaves the rest as it is. A [Scenario] is what both
// mean; it says nothing of how it is played.
//
// # Files
//
// A line is a directive: a word, what it is about, and parameters, which are words or
// name=value, in any order, each once. A # at the beginning of a word makes the rest
// of the line a comment; blank lines are free. The comment that a file begins with is
// its prose and says why the scenario exists; one that is kept has it.
//
// What is spoken of is declared above: nodes and jobs before what is on them, all of
// that before the first at. A word that is not known or has no effect is an error with
// its line; several are told at once. What can be and hardly is meant, such as a
// deadline of a millisecond, is a warning. What only the run can know is a warning of the
// run: an event that finds nothing to do, a fault that never strikes.
//
// After a line of ---- comes the story, after another the end: what is expected, to
// the letter. A file without expects that no guarantee is broken.
//
// Names are letters, digits, - and _. Names in a row are a range, n1..n6, and several
// a list, n1,n4..n6; a range keeps the width of its numbers, n08..n12. A job is "web",
// or "blue/web" in another namespace than the default; a group is "web.api", and the
// one that is named as its job is "web"; allocations are "web[0]", "web.api[0..5]".
// A selector matches allocations: "*" all, "web" those of a job, "web.api" of a group,
// "web[0]" of one index, and with "@n1" after it, or alone, only those on a node.
//
// Times are as in Go, 500ms, 10m, 1h30m, and count from the beginning. A range of times,
// 1s..3s, is drawn from.
//
// # What a world is made of
//
//	seed 7
//
// What ranges and probabilities leave open is drawn from it, and the order of what
// happens at one time. Without, or with 0, nothing is drawn: ranges are at their least,
// what is unhealthy=0.1 is well, and the order is that of the file.
//
//	cluster servers=3 replicas commit=1ms..20ms
//
// says what the servers are:
//
//   - servers=N: how many there are; 1 if left out, which succeeds itself.
//   - replicas: each server applies the log to a store of its own. Otherwise they are
//     views of one store.
//   - commit=RANGE: from proposal to apply of a write; no time if left out.
//   - late=RANGE: how late a write is that a fault makes late; 3s if left out.
//   - establish=RANGE: from an election to the first step of the leader's drainer; no
//     time if left out.
//   - wake=RANGE, schedule=RANGE: from a wake-up to the step of the drainer, and of the
//     scheduler, that it asks for; no time if left out.
//   - gather=TIME: clients gather what they have to say, and say it at whole multiples of
//     TIME; at once if left out.
//
// The drainer is configured by
//
//	drainer max-ids=4 below-budget=proceed
//
// and what is left out is its own default:
//
//   - max-ids=N, max-bytes=N, in-flight=N: bounds of an entry, and of the entries that
//     are not answered.
//   - queries=X: looks at the state per second. min-interval=TIME: the least between
//     rounds of writes. coalesce=TIME|none: how late a deadline may be to share a batch.
//   - retry=TIME, retry-max=TIME: how long what failed waits at first, and at most.
//   - health-grace=TIME, stop-margin=TIME: how long past its time a verdict, and a stop,
//     is waited for.
//   - below-budget=hold|proceed, plugins=after-wait|after-stop,
//     completion=stopped|replaced|migrated|asked: its policy, each the first if left out.
//
// # Nodes, jobs and allocations
//
//	node n1..n6 cpu=4000 class=a
//
// declares nodes:
//
//   - cpu=MHZ, memory=MB, disk=MB, gpu=THOUSANDTHS: what it has; plenty if left out.
//   - max-allocs=N: the most allocations on it. class=NAME: its class.
//   - status=ready|initializing|down|disconnected: what it begins with; ready if left
//     out. ineligible: nothing may be placed on it.
//   - absent: the servers do not know it. It can register later, and allocations may be
//     on it all the same.
//
// A job of one group stands on one line. Others of its groups, or those it has instead
// of one of its own name, follow right below:
//
//	job web count=6 max-parallel=1
//	job blue/shop
//	group blue/shop.api count=3
//	group blue/shop.cart count=2
//
// A job has a group of its own name if its line says anything of one, or if no group
// follows. Of the job:
//
//   - type=service|batch|system|sysbatch; service if left out. priority=N: 1 to 100.
//   - stopped: it is not to run. absent: it is not registered, as after a purge; it can
//     be later, and allocations of it may be there all the same.
//
// Of a group:
//
//   - count=N: 1 if left out. max-parallel=N: how many may be down for drains.
//   - min-healthy=TIME, healthy-deadline=TIME: how long it runs well before it is
//     healthy, and by when there has to be a verdict.
//   - kill=TIME, shutdown=TIME: kill timeout and shutdown delay, which make its stop time.
//   - cpu=MHZ, memory=MB, gpu=THOUSANDTHS: what it asks for; nothing if left out.
//   - classes=NAME,...: the classes of nodes that it may run on.
//   - plugin: it is a storage plugin. sticky, migrate: its disk stays on the node, and
//     its data moves with it.
//   - lost-after=TIME: how long it waits for a node that is out of touch.
//
// What is left out is the product's own default. A job of which no allocation is named
// is placed by the scheduler when the scenario begins; that of others is left to what
// happens.
//
//	alloc web[0..5] on=n1..n3
//
// These are one after the other on the nodes, again from the first when they are more.
// Without indexes they are as many as the nodes named, from 0 on.
//
//   - on=NODES: where they are. This one is needed.
//   - health=good|bad|none: the verdict; good if left out, and none for batch work.
//   - canary: they are canaries. age=TIME: how long ago they were placed; 1h if left out.
//   - client=running|pending|complete|failed|lost|unknown, desired=run|stop|evict: what
//     their client and the servers say; the first if left out.
//   - marked: an operator, and no drain, has marked them.
//   - replaces=INDEX: which of the group they have replaced.
//
// Jobs in a row that are alike share a line, and so do their allocations, on one node or
// each on the next of a range:
//
//	job sum1..sum9 type=batch count=2
//	alloc sum1..sum9[0..1] on=n1..n9
//
// Allocations start after a second, are healthy after their group's min-healthy, run
// for an hour if they are to end by themselves, and stop after two seconds, unless
//
//	client web@n1 start=1s..3s stop=never unhealthy=0.1
//
// says otherwise of those that a selector matches; of several lines that match, what a
// later one names holds.
//
//   - replacements: only of those that have replaced another.
//   - start=RANGE, copy=RANGE: how long they take to start, and to copy the data that
//     they inherit. run=RANGE: how long batch work runs. stop=RANGE: how long they take
//     to stop, if their kill timeout lets them.
//   - verdict=RANGE: how long after their start they are judged. unhealthy=P: how likely
//     the verdict is bad.
//
// Each range may be never.
//
// # What happens
//
//	at 5s drain n1 deadline=10m
//	at 5s before marks edit web max-parallel=1
//
// What happens at one time happens in the order of the file. With before it happens just
// before an entry is applied, between plan and apply: the first of its kind from that
// time on, be it of marks, completion, plan or report. Several that come before one
// entry stand one below the other.
//
//	at 9s maybe cancel n1
//
// Maybe, right before the operation, says that it is meant even if nothing comes of it;
// otherwise the run warns of an operation that changes nothing, of an entry that never
// comes, and of a fault without p that never has an opportunity.
//
// What operators do:
//
//   - drain NODES: deadline=none|force|infinite|TIME, none if left out; ignore-system:
//     system jobs stay; key=NAME: of the request; twice: it is sent again although it
//     worked. Of a node that drains it is another strategy.
//   - cancel NODES: eligible gives them back; key=NAME.
//   - register JOB: as it is declared.
//   - edit JOB or edit JOB.GROUP: count=N, max-parallel=N; of one group also remove, or
//     rename=NAME. With nothing it is only registered again.
//   - stop JOB, purge JOB: purge also forgets it. stop web[0]: the servers stop one
//     allocation.
//   - finish web[0], fail web[0]@n2: an allocation ends by itself, well or not.
//   - place web[3] on=n1: allocations land past the scheduler, with the parameters of
//     alloc; count=N: and the group is to have so many from that write on.
//   - node NODES down, disconnected, ready, register, delete, eligible or ineligible:
//     changes of nodes. A node registers as it is declared. unnoticed: the write carries no
//     evaluations. The state machine still makes those that the change calls for.
//
// What becomes of servers:
//
//   - elect, elect s2: the leader's term ends, and s2 or the next leads. lost: what the
//     old one had in flight is lost; otherwise it survives. believes=TIME: how long the
//     old one goes on believing that it leads.
//   - pause, pause s2: the leader, or s2, stands still; for=TIME is needed.
//   - clock, clock s2: all clocks, or that of s2, are set; ahead=TIME is needed, below
//     zero for behind.
//   - restore: the leader restores a snapshot. forget: its drainer loses all that it
//     remembers.
//
// # Faults
//
//	at 12s fault apply/reject on=drainer p=0.2 count=3 for=1m
//
// arms a fault. Each has opportunities, and takes one by one:
//
//   - on=WHAT: only those of it. p=P: how likely one is taken; all if left out.
//   - count=N: how many are taken at most. for=TIME: how long it stays armed. With
//     neither, the first.
//   - delay=RANGE: how late, or how long, as the fault has it.
//
// Of each write, on=drainer, scheduler, clients or operator, or on=marks, completion,
// plan, report or barrier for entries of that kind:
//
//   - apply/reject: it is surely not applied, and its writer is told.
//   - apply/full: it is not taken; its writer tries again.
//   - apply/ambiguous-applied, apply/ambiguous-lost: its writer is told that the outcome
//     is unknown, and it is applied, or never.
//   - apply/ambiguous-late: its writer is told so at once, and it is applied after delay,
//     or the cluster's late.
//   - apply/slow: it is applied after delay, or the cluster's late, and those behind it
//     are too.
//
// Of each entry of marks, on=JOB or on=JOB.GROUP:
//
//   - apply/partial-refuse: just before it an allocation of a group that it marks fails,
//     so that some of its marks are not true any more.
//
// Of leaders:
//
//   - leader/lose-mid-batch, of each write of the drainer: the term ends after delay,
//     before the answer.
//   - leader/flap, when armed and of each term that begins: it ends after delay.
//   - leader/two, of each election: the old leader believes that it leads for delay.
//   - leader/paused, of each step of the drainer: its server stands still for delay, and
//     what the step wrote does not leave before.
//
// Of each wake-up of the drainer:
//
//   - watch/delay: it comes delay later.
//   - watch/coalesce: it comes with the next one, or delay later.
//   - watch/spurious: another comes, delay later, for nothing.
//
// Of each step of the drainer:
//
//   - view/stale: it sees the state of some entries ago, and no other until delay later.
//
// Of each allocation when its client first sees it, on=SELECTOR:
//
//   - client/slow-stop: it takes all of its stop time. client/never-stop: it never stops.
//   - client/fail-new: it is judged unhealthy. client/mute: it is never judged.
//
// Of the scheduler:
//
//   - sched/slow, of each wake-up: it comes delay later.
//   - sched/fail-eval, of each evaluation of a drain, on=JOB: it fails.
//   - sched/unplaceable, when armed: nothing can be placed anywhere for delay.
//
// Of one node, on=NODE or one that is drawn, when armed:
//
//   - node/crash, node/disconnect: its client is silent for delay. If that is long the
//     servers say of the node that it is down, or disconnected.
//
// What operators do, and what is done to servers, at opportunities instead of at times; what
// the operation needs is drawn:
//
//   - api/dup, of each request about a drain, on=NODE: it comes twice, with one key.
//     api/timeout: its answer is lost, and it comes again with its key delay later.
//   - drain/update, drain/cancel, of each node of which an entry marks something, on=NODE:
//     its drain gets another deadline, or is cancelled, delay later. drain/again, of each
//     drain that is over: its node is drained again delay later.
//   - job/edit, job/scale, job/purge, of each job of which an entry marks something, on=JOB:
//     its groups get another max-parallel, or another count, or it is forgotten, delay later.
//   - node/return, of each node that is said to be lost, on=NODE: it is back delay later.
//   - clock/forward, clock/back, clock/skew, of each step of the drainer: its server's clock
//     is set forward by delay, or back by it, or to delay ahead or behind.
//   - store/restore, of each entry of marks: the leader restores a snapshot delay later.
//
// # How long
//
//	run for=20m calm=10m
//
// says when it ends, and how it is told:
//
//   - for=TIME: when the scenario ends; when nothing is left to be done if left out.
//   - calm=TIME: when all faults end, so that drains have to end within their bounds. If
//     left out, they have to from the time on at which no fault is on any more.
//   - cut-servers=s2,s3, cut-nodes=NODES: what is not mended then, and stays outside of the
//     core: a minority of the servers, which stand still from the calm on and never lead,
//     and nodes whose clients are silent for good. What clients were born with, such as that
//     they never stop, stays anyway.
//   - drained: it ends before that, a while after the last drain has ended, if nothing that
//     is left to happen begins another.
//   - brief: the story counts nodes and allocations rather than name them.
package scenario
