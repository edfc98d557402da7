// Package scenario is the language of simulations. A .drain file describes a cluster at the
// beginning, the events in it with their times, and the expected result. This comment is the manual.
//
//	# Both allocations of a service are on draining nodes. One budget limits
//	# both drains.
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
// [Parse] reads a file, [Print] writes one in the canonical form, [Rewrite] replaces the expected
// results of one. A [Scenario] is the content of a file. Package sim plays it.
//
// # Files
//
// A line is a directive: a word, its subject, and parameters. A parameter is a word or name=value.
// Parameters come in any order, each at most once. A # at the beginning of a word starts a comment,
// which ends with the line. Blank lines have no meaning.
//
// The comment at the beginning of a file is its prose. It states why the scenario exists. Each file in
// sim/scenarios has one.
//
// Names are declared before they are used: nodes, volumes and jobs first, then allocations and clients, and
// all of them before the first "at". An unknown word, or one without effect, is an error with its
// line number. A valid but unlikely value, such as a deadline of a millisecond, is a warning. The run
// itself warns of an event that changes nothing and of a fault that never strikes.
//
// A line of ---- begins the expected story, and a second one the expected end. The run must produce
// exactly these texts. A file without them only expects that no guarantee is broken.
//
// A name has letters, digits, - and _. Numbered names form a range, n1..n6, and several names a list,
// n1,n4..n6. A range keeps the width of its numbers: n08..n12. A job is "web", or "blue/web" in
// another namespace than the default. A group is "web.api"; the group with the name of its job is
// "web". Allocations are "web[0]", "web.api[0..5]".
//
// A selector matches allocations: "*" all, "web" those of a job, "web.api" those of a group, "web[0]"
// those with one index. With "@n1" after it, it matches only allocations on that node. "@n1" alone
// matches all allocations on the node.
//
// Times have the format of Go: 500ms, 10m, 1h30m. They count from the beginning. From a range of
// times, such as 1s..3s, the run draws one.
//
// # Servers and the drainer
//
//	seed 7
//
// The run uses the seed to draw from ranges and probabilities, and to order events with equal times.
// Without a seed, or with 0, nothing is drawn: a range gives its least time, a probability below 1
// gives no, and events with equal times keep the order of the file.
//
//	cluster servers=3 replicas commit=1ms..20ms
//
// describes the servers:
//
//   - servers=N: the number of servers; 1 by default. A single server succeeds itself.
//   - replicas: each server applies the log to its own store. Otherwise all servers share one store.
//   - commit=RANGE: the time from the proposal of a write to its apply; 0 by default.
//   - late=RANGE: the delay of a write that a fault makes late; 3s by default.
//   - establish=RANGE: the time from an election to the first step of the new leader's drainer; 0 by
//     default.
//   - wake=RANGE, schedule=RANGE: the time from a wake-up to the step of the drainer, and of the
//     scheduler; 0 by default.
//   - gather=TIME: clients collect their reports and send them at multiples of TIME. By default
//     they send each report at once.
//   - collect=TIME: the leader deletes ended allocations, evaluations and stopped jobs that nothing
//     needs, TIME after their last write. It searches for them each TIME. By default it deletes
//     nothing.
//   - clients=real: each node runs the real client over scripted drivers. By default one simulated
//     client runs for all nodes.
//   - hold=TIME: how long a real client holds a storage plugin that must stop, and the end of an
//     allocation, for volumes. By default it is that of the product.
//   - retention=TIME: how long a real client keeps the data of an ended allocation for a replacement. By
//     default it is that of the product.
//
// The drainer is configured by
//
//	drainer max-ids=4 below-budget=proceed
//
// Parameters that are left out have the drainer's own defaults:
//
//   - max-ids=N, max-bytes=N: the limits of one entry. in-flight=N: the limit of entries without an
//     answer.
//   - queries=X: reads of the state per second. min-interval=TIME: the least time between rounds of
//     writes. coalesce=TIME|none: how long a deadline may wait to share an entry with others.
//   - retry=TIME, retry-max=TIME: the first and the longest wait before a failed write is repeated.
//   - health-grace=TIME, stop-margin=TIME: how long the drainer waits for an overdue verdict, and for
//     an overdue stop.
//   - below-budget=hold|proceed, plugins=after-wait|after-stop,
//     completion=stopped|replaced|migrated|marked: its policy. The first value is the default.
//
// # Nodes, jobs and allocations
//
//	node n1..n6 cpu=4000 class=a
//
// declares nodes:
//
//   - cpu=MHZ, memory=MB, disk=MB, gpu=THOUSANDTHS: its resources. By default cpu, memory and disk
//     are plenty, and gpu is 0.
//
//   - devices=KIND:COUNT[:ATTRIBUTE=NUMBER...],...: its devices, instead of thousandths of a GPU. A kind
//     is a type, gpu, or acme/gpu/x1. An attribute is a number with a unit or without. The four devices of
//     gpu:4:memory=16GiB are gpu0 to gpu3, those of acme/gpu/x1:2 are x1-0 and x1-1.
//
//   - ports=FIRST-LAST: the range of its dynamic ports. Without it the node has no ports for groups.
//
//   - cores=N: the number of cores that tasks can have for themselves: 0 to N-1. Without it there are none.
//
//   - max-allocs=N: the most allocations on it. class=NAME: its class.
//
//   - status=ready|initializing|down|disconnected: its status at the beginning; ready by default.
//     ineligible: the scheduler places nothing on it.
//
//   - absent: the servers have no such node. It can register later. Allocations may be on it.
//
//   - containers: with clients=real, the driver of the node keeps each task in a container. Only the
//     driver can kill the task, and the task dies with the driver. The driver answers WaitTask with code
//     0 as soon as StopTask has begun, while the task still runs.
//
//     volume data1..data3 plugin=disks
//
// declares volumes in the default namespace. They need clients=real. A volume data[0..2] is three
// volumes, for allocations with the indexes 0 to 2.
//
//   - plugin=ID: the id of its storage plugin. This parameter is required.
//   - access=single-node-reader-only|single-node-writer|multi-node-reader-only|
//     multi-node-single-writer|multi-node-multi-writer: how allocations may use it;
//     single-node-writer by default.
//   - absent: it does not exist. It can register later.
//
// A job of one group is one line. Further groups follow directly below:
//
//	job web count=6 max-parallel=1
//	job blue/shop
//	group blue/shop.api count=3
//	group blue/shop.cart count=2
//
// A job has a group with its own name if its line has a parameter of a group, or if no group follows.
// Parameters of a job:
//
//   - type=service|batch|system|sysbatch; service by default. priority=N: 1 to 100.
//   - stopped: the job is stopped. absent: the job is not registered, as after a purge. It can
//     register later. Allocations of it may exist.
//
// Parameters of a group:
//
//   - count=N: 1 by default. max-parallel=N: how many allocations drains may move at the same time.
//     max-surge=N: how many may have a replacement beside them; then each moves when its replacement is
//     healthy. 0 by default: each moves before its replacement starts. update=N: how many a new version of the tasks replaces at the same time; 0 is all. distinct: no
//     node gets two of its allocations.
//   - reschedule=none|N/INTERVAL:DELAY|unlimited:DELAY: how often and after which delay an allocation of
//     a service or batch job that ended by itself is replaced. :exponential:LONGEST or :fibonacci:LONGEST
//     follows a delay that grows. By default it is replaced at once, ten times in a row.
//   - min-healthy=TIME: how long an allocation runs before it is healthy. healthy-deadline=TIME: when
//     its verdict is due.
//   - kill=TIME, shutdown=TIME: kill timeout and shutdown delay. Their sum is the stop time, if the
//     group has no other task and no delay of its own: group-shutdown=TIME.
//   - cpu=MHZ, memory=MB, gpu=THOUSANDTHS: the resources that it requests; none by default.
//   - devices=KIND:COUNT[:CONSTRAINT...],...: the devices that its main task requests, instead of
//     thousandths of a GPU. A constraint compares an attribute of the devices: gpu:1:memory>=8GiB. The
//     operands are = != < <= > and >=.
//   - cores=N: the number of cores that its main task has for itself. It replaces cpu.
//   - ports=NUMBER|dynamic,...: the ports of its node that each allocation gets: 80,dynamic is a static and a
//     dynamic one.
//   - classes=NAME,...: the classes of nodes on which it may run.
//   - plugin: it is a storage plugin. plugin=ID[:node|controller|monolith][:unstaged]: it serves the
//     volumes of this plugin id, with real clients. It is a node plugin by default. An unstaged plugin
//     has no calls that stage.
//   - volumes=NAME[:ro],...: the volumes that each allocation uses, read only with ro. data[] is for
//     each allocation the volume data with its own index.
//   - sticky, migrate: its disk stays on the node, and its data
//     moves with it. disk=MB: the size of its disk. With real clients, writes=MB: how much the tasks
//     of each allocation write to it; 1 by default.
//   - prestart, poststart, sidecar, poststop: it has a further task with this lifecycle.
//   - restart=TIME: a task that has ended starts again after TIME, without a limit. By default the
//     restart policy of the product limits the restarts.
//   - service: each allocation is an instance of a service with the name of its group.
//   - check=INTERVAL/TIMEOUT: the check of the service. It decides about the health of the allocation, unless :ignored
//     follows. :restart:LIMIT/GRACE also follows: so many failures in a row restart the main task. Those in the grace after
//     its start do not count. Only real clients run checks.
//   - lost-after=TIME: how long an allocation may be unreachable before it is lost. no-replace: nothing
//     replaces it meanwhile, nor when it is lost, until its end is confirmed. keep-replacement: if its
//     node returns in time, its replacement is kept.
//   - stop-away=TIME: how long a client that reaches no server lets an allocation run. max-run=TIME: how long a real
//     client lets an allocation run.
//
// Parameters that are left out have the defaults of the product. If a file names no allocation of a
// job, the scheduler places the job at the beginning. Otherwise it does so only after an event.
//
//	alloc web[0..5] on=n1..n3
//
// declares allocations. They take the nodes in turn. Without indexes there is one on each named node,
// and their indexes begin at 0.
//
//   - on=NODES: their nodes. This parameter is required.
//   - health=good|bad|none: the verdict; good by default, and none for batch work.
//   - canary: they are canaries. age=TIME: how long ago they were placed; 1h by default.
//   - client=running|pending|complete|failed|lost|unknown, desired=run|stop|evict: their client
//     status and their desired status. The first value is the default.
//   - marked: an operator has marked them, without a drain.
//   - replaces=INDEX: the allocation of the group which they have replaced. failures=N: they have replaced
//     N allocations that failed one after the other. After ten the scheduler places no other one.
//
// Numbered jobs with equal parameters share a line. So do their allocations, if they are all on one
// node, or each on the next node of a range:
//
//	job sum1..sum9 type=batch count=2
//	alloc sum1..sum9[0..1] on=n1..n9
//
// An allocation starts within a second. It is healthy after the min-healthy of its group. Batch work
// ends after an hour. A stop takes two seconds. A client line changes this for the allocations that
// its selector matches:
//
//	client web@n1 start=1s..3s stop=never unhealthy=0.1
//
// If several lines match, the last line with a parameter decides that parameter.
//
//   - replacements: only allocations that have replaced another match.
//   - start=RANGE: the time to start. copy=RANGE: the time to copy inherited data. run=RANGE: how
//     long batch work runs. stop=RANGE: the time to stop, limited by the kill timeout.
//   - verdict=RANGE: the time from start to verdict. unhealthy=P: the probability that the verdict
//     is bad.
//   - worsen=RANGE: the time from a good verdict to a bad one. recover=RANGE: the time from a bad
//     verdict to a good one. Each happens at most once to an allocation, and not while it stops.
//     Without a range, or with 0s, it does not happen.
//   - crash=RANGE: how long the main task of a service runs until it exits with 1, again and again. The
//     client judges it by its rule, so verdict, unhealthy, worsen and recover have no effect. A simulated
//     client restarts it without a limit.
//
// Each of these ranges may be never.
//
// With real clients, these words describe the tasks of the allocation. Start is the time until a
// prestart task ends, or until the driver has started the main task. Stop counts from the order, and the
// client limits it. An allocation with stop=never is in state D; one that
// serves volumes ends by SIGKILL alone. An unhealthy one exits with 1 again
// and again. Copy is how long the data takes to the allocation. A real client judges by the tasks. So
// verdict, worsen and recover have no effect.
//
// # Events
//
//	at 5s drain n1 deadline=10m
//	at 5s before marks edit web max-parallel=1
//
//	at +5s drain n2 deadline=10m
//
// A time with a + counts from the event of the line before. Print writes the time from the beginning.
//
// Events with equal times happen in the order of the file, unless a seed orders them. An event with
// "before" happens between plan and apply of an entry: the first entry of the kind from that time on.
// The kinds are marks, completion, plan, report and collect. Several events before one entry are on
// consecutive lines.
//
//	at 9s maybe cancel n1
//
// The run warns of an operation without effect, of the drain of a node that became ineligible before
// the scheduler placed the jobs, of an entry that never comes, and of a fault without p that has no
// opportunity. "maybe" before the operation suppresses this warning.
//
// Operations of operators:
//
//   - drain NODES: deadline=none|force|infinite|TIME; none by default. ignore-system: system jobs
//     stay. max-surge=N: that of all groups with a lower one. key=NAME: the key of the request. twice: the
//     request is sent a second time. On a draining node it changes the drain's strategy.
//
//   - cancel NODES: eligible makes the nodes eligible again; undo makes those eligible that were before their
//     drain; key=NAME.
//
//   - hold NODES or hold all: pauses the drains of the nodes, or all drains. for=TIME: resumes them after
//     this time.
//
//   - resume NODES or resume all: ends such pauses.
//
//   - confirm NODES: confirms the newest ended drain of each node, although its record counts
//     unconfirmed allocations.
//
//   - register JOB: registers the job as the file declares it.
//
//   - edit JOB or edit JOB.GROUP: count=N, max-parallel=N, max-surge=N, version=N. Another version of the tasks
//     replaces the allocations that run. service=N: another version of the service changes its tag alone. For one group also remove, or rename=NAME.
//     Without a parameter the job is registered again without a change.
//
//   - stop JOB, purge JOB: purge also deletes the job. stop web[0]: a plan without
//     an evaluation stops one allocation. The servers refuse it, so this only tests the refusal. To
//     end an allocation, write finish or fail.
//
//   - finish web[0], fail web[0]@n2: the allocation ends by itself, complete or failed.
//
//   - place web[3] on=n1: places allocations without the scheduler, with the parameters of alloc.
//     count=N: the same write sets the count of the group.
//
//   - node NODES down, disconnected, ready, register, delete, eligible or ineligible: changes nodes.
//     A node registers as the file declares it. unnoticed: the write carries no evaluations. The
//     state machine still makes those that the change requires.
//
//   - volume VOLUME register, deregister or detach: changes a volume. It registers as the file declares
//     it. A detach takes it off the node on=NODE, which is required. force: also one that allocations use.
//
//   - target SELECTOR fails, hangs or passes: what the target of the check does, for the allocations that run and for later
//     ones. The last event that matches decides. It passes at the beginning. replacements: only allocations that have
//     replaced another match. It needs clients=real.
//
// Operations on servers:
//
//   - elect, elect s2: ends the leader's term. s2 or the next server leads. lost: the old leader's
//     entries in flight are lost; otherwise they survive. believes=TIME: how long the old leader
//     still acts as a leader.
//   - pause, pause s2: the leader, or s2, stands still for the time for=TIME, which is required.
//   - clock, clock s2: sets all clocks, or that of s2, to ahead=TIME, which is required. It is
//     negative for a clock that is behind.
//   - restore: the leader restores a snapshot. forget: its drainer loses its memory.
//
// # Faults
//
//	at 12s fault apply/reject on=drainer p=0.2 count=3 for=1m
//
// arms a fault. An armed fault strikes at its opportunities:
//
//   - on=TARGET: only at opportunities with this target. p=P: the probability of each strike; 1 by
//     default.
//   - count=N: the most strikes. for=TIME: how long it stays armed. Without both it strikes once.
//   - delay=RANGE: a delay or a duration, as the fault describes it.
//
// At each write. The target is drainer, scheduler, clients, operator, collector, volumes or
// confirmer for the writer, or marks, completion, plan, report, collect or barrier for the kind of
// entry:
//
//   - apply/reject: the write is not applied, and its writer gets this answer.
//   - apply/full: the write is not accepted. Its writer tries again.
//   - apply/ambiguous-applied, apply/ambiguous-lost: its writer gets the answer that the outcome is
//     unknown. The write is applied, or it never is.
//   - apply/ambiguous-late: the same, and the write is applied after delay, or after the cluster's
//     late.
//   - apply/slow: the write and those behind it are applied after delay, or after the cluster's late.
//
// At each entry of marks, on=JOB or on=JOB.GROUP:
//
//   - apply/partial-refuse: just before the entry, an allocation of a marked group fails. The state
//     machine refuses some of the marks.
//
// At terms of leaders:
//
//   - leader/lose-mid-batch, at each write of the drainer: the term ends after delay, before the
//     answer.
//   - leader/flap, when armed and at the beginning of each term: the term ends after delay.
//   - leader/two, at each election: the old leader still acts as a leader for delay.
//   - leader/paused, at each step of the drainer: its server stands still for delay. The writes of
//     the step leave only after it.
//
// At each wake-up of the drainer:
//
//   - watch/delay: the wake-up comes after delay.
//   - watch/coalesce: the wake-up comes with the next one, or after delay.
//   - watch/spurious: a second wake-up comes after delay, without a reason.
//
// At each step of the drainer:
//
//   - view/stale: the drainer reads the state of some entries ago, and no newer one until delay has
//     passed.
//
// At each allocation when its client first reads it, on=SELECTOR:
//
//   - client/slow-stop: it uses all of its stop time. client/never-stop: it never stops.
//   - client/fail-new: its verdict is unhealthy. client/mute: it never has a verdict.
//
// At the scheduler:
//
//   - sched/slow, at each wake-up: the wake-up comes after delay.
//   - sched/late-answer, at the answer to each write: the scheduler gets the answer after delay. The
//     state shows the write before.
//   - sched/fail-eval, at each evaluation of a drain, on=JOB: the evaluation fails.
//   - sched/unplaceable, when armed: for delay, no node accepts an allocation.
//
// At one node when armed, on=NODE or a node that is drawn:
//
//   - node/crash, node/disconnect: its client is silent for delay. After a long silence the servers
//     set the node down, or disconnected.
//
// Faults that perform an operation. The run draws the parameters of the operation:
//
//   - api/dup, at each drain request, on=NODE: the request comes twice with one key. api/timeout: its
//     answer is lost, and the request comes again with its key after delay.
//   - drain/update, drain/cancel, at each node on which an entry marks allocations, on=NODE: after
//     delay the drain gets another deadline, or is cancelled. drain/pause, drain/pause-all: after delay the
//     drain is paused, or all drains are, and resumed within a minute. drain/again, at the end of each drain:
//     the node is drained again after delay.
//   - job/edit, job/scale, job/purge, at each job of which an entry marks allocations, on=JOB: after
//     delay its groups get another max-parallel, or another count, or the job is purged.
//   - node/return, at each node that is lost, on=NODE: it returns after delay.
//   - clock/forward, clock/back, clock/skew, at each step of the drainer: its server's clock is set
//     forward or back by delay, or to delay ahead or behind.
//   - store/restore, at each entry of marks: the leader restores a snapshot after delay.
//
// Faults of real clients, on=NODE:
//
//   - client/crash, at each effect that a client begins, and at each answer to one: the client dies,
//     and starts again after delay. Its tasks and drivers continue.
//   - driver/crash, at each call of a client to a driver: the driver dies, before or after the call
//     takes effect, or after delay. driver/hang: it stands still for delay. shim/kill: after delay the shims of the
//     allocation die, and with them its tasks.
//   - driver/lie, at each allocation when its client first reads it, on=SELECTOR: its driver answers
//     before the task has stopped, forgets how it ended, cannot take it over, or never answers WaitTask.
//   - node/reboot, when armed at the node or a drawn one: the machine is off for delay. node/freeze: its
//     client makes no step for delay, and its tasks continue. disk/full: its
//     disk has no room for delay. record/lose: one of its records is damaged, its client dies and starts
//     again after delay. disk/wipe: the same, and all records are lost. Control groups of tasks stay, and
//     the client finds them.
//
// Faults of device plugins, on=NODE. Each node with devices has one plugin for each of its kinds:
//
//   - device/crash, at each call of a client to a device plugin: the plugin dies, before or after the call
//     takes effect, or after delay. device/hang: it stands still for delay. device/fail, at each
//     reservation: it fails.
//   - At the node or a drawn one with devices, when armed, for delay: device/sick: a device is unhealthy.
//     device/vanish: a device is not there. device/rename: all devices have other ids. device/mute: the
//     plugins end their reports.
//
// Faults of storage plugins that serve volumes, on=NODE:
//
//   - At each call of a client to a storage plugin. storage/fail, also at each call of the leader: it fails,
//     before or after it takes effect. storage/slow: its answer comes after delay. storage/hang: the plugin stands still for
//     delay. storage/crash: the plugin's task dies, before or after the call takes effect, or after delay.
//   - At each call of the leader to a controller on the node: it is not answered for delay. controller/hang:
//     it takes effect after delay, unless the controller has died by then. controller/mute: it takes effect at
//     once.
//   - mount/busy, at each call of a client that takes a volume off an allocation: processes keep the mount busy
//     for delay.
//   - claim/lose, at each request of a client for a claim, or to release one: the answer is lost.
//
// Faults of the data of ephemeral disks that move, on=NODE, which gets the data:
//
//   - At each copy, when it begins. data/cut: it is cut after delay. data/slow: nothing arrives for delay.
//   - data/twice, at each request for data: an earlier request for the allocation comes again after delay, and
//     the servers end the newer one.
//
// With real clients, node/crash kills the client. Without them these faults do not strike.
//
// # The end of a run
//
//	run for=20m calm=10m
//
// sets the end and the form of the story:
//
//   - for=TIME: when the scenario ends. By default it ends when nothing is left to do.
//   - calm=TIME: when all faults end. From then on drains must end within their bounds. By default
//     this holds as soon as no fault is active.
//   - cut-servers=s2,s3, cut-nodes=NODES: servers and nodes that stay broken after the calm. The
//     servers are a minority, stand still and never lead. The clients of the nodes stay silent.
//     Allocations that never stop stay so without this parameter.
//   - drained: the scenario ends soon after the last drain has ended, if no later event begins
//     another.
//   - brief: the story gives numbers of nodes and allocations instead of their names.
package scenario
