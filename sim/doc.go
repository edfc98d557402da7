// Package sim plays scenarios: whole clusters in one goroutine and in virtual time, with
// the real drainer, state store, state machine and scheduler, and with faults.
//
// A [scenario.Scenario] describes a cluster, the events of a run, and the faults. [Play] plays it
// in a [world.World]. Judges that share no code with the drainer check the guarantees G1 to G11
// ([invariant.Judge]). Another judge checks the scheduler's plans ([placement.Judge]), and another
// one the deletion of ended work ([collected.Judge]), and another one the claims of volumes
// ([claimed.Judge]), and another one compares the ends of drains with the processes of the nodes
// ([ended.Judge]), and another one the rollouts of new versions ([rolled.Judge]), and another one the catalogue of services
// ([listed.Judge]), and another one the journals of drains ([journaled.Judge]), and another one the
// learned times of groups ([timed.Judge]). If the nodes run the real client, a judge of each node
// checks N1 to N9, N12 ([onnode.Judge]). The [Result] holds the violations, and the events that had no effect ([NoEffect]). Equal scenarios give equal runs,
// to the last step: the hash of a run shows it.
//
// # Packages
//
//	scenario   the language of .drain files
//	setting    the cluster and the faults of a scenario
//	world      the cluster: event queue, chance, raft's contract, faults
//	invariant  the judges of the drainer
//	placement  the judge of the scheduler
//	collected  the judge of the deletion of ended work
//	claimed    the judge of the claims of volumes
//	ended      the judge of the ends of drains by processes
//	rolled     the judge of rollouts
//	listed     the judge of the catalogue of services
//	journaled  the judge of the journals of drains
//	timed      the judge of the learned times of groups
//	machine    a node that runs the real client
//	onnode     the judge of such a node
//	swarm      scenarios from seeds, many of them, and counts of rare events
//	foretell   plans of drains beside what happens
//	timeline   the picture of a run, and in timeline/drawing the parts of a picture over time
//	shrink     makes a failing scenario small
//	planted    planted bugs, to test the simulator
//	scenarios  the scenarios that are kept
package sim
