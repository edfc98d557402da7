// Package sim plays scenarios: whole clusters in one goroutine and in virtual time,
// with the real drainer, state store, state machine and scheduler, and with everything
// that may go wrong.
//
// A [scenario.Scenario] says what a cluster begins with, what happens, and which
// faults strike. [Play] plays it in a [world.World], has G1 to G11 of the
// drainer counted again by judges that share no code with it ([invariant.Judge]), and
// tells what came of it, and what nothing came of ([Vain]). Equal scenarios come to equal
// ends, to the last step: the hash of a run says so.
//
// # Around it
//
//	scenario   the language of .drain files
//	setting    what a scenario says, as what a cluster is made of
//	world      the cluster: event queue, chance, raft's contract, faults
//	invariant  the judges
//	swarm      scenarios from seeds, many of them, and counts of what was rare
//	timeline   the picture of a run
//	shrink     a failing scenario, made small
//	planted    bugs on purpose, to judge the simulator
//	live       the same scenarios, with goroutines
//	scenarios  the scenarios that are kept
package sim
