// Package swarm makes scenarios from seeds, plays many of them, and counts what was
// rare.
//
// # From a seed
//
// [Generate] is a function: equal seeds and sizes make equal scenarios. It draws first
// which kinds of things are on at all, half of them in the mean, because a world in
// which everything goes wrong is only one world; then what there is, then what happens,
// then faults. All of it is written out as the typed events of a [scenario.Scenario],
// so that a seed that fails can be kept as a file and made smaller. Each part draws
// from a stream of its own: a change of one shifts no other. After a time all faults
// end, but for what in some seeds stays broken outside of the core that the drains need:
// a minority of the servers, a node, an allocation that never stops. The run may go on far
// longer than anything takes that ends at all; most end with their last drain.
//
// # Many
//
// [Play] plays seeds on some workers. They are the only goroutines of a simulation,
// and each seed is played by one of them alone. Some seeds are played twice, and fail
// if they do not come to the same.
//
// # Told otherwise
//
// The swarm plays some seeds twice more: steadily ([Steady]), without the parts that may rightly
// change the end, and otherwise, by one of [Relations]: with another seed, with writes that fail,
// with terms that end. The times may differ. The facts of both ends must be the same, or the seed
// fails. This needs no bound and no model, so it finds bugs that all judges take for granted.
//
// # Not vacuous
//
// A swarm that finds nothing says something only of what has happened in it. An
// [Observer] counts what is rare in a run, and [Rates] says in how many runs each of
// it has to happen: a swarm in which something is rarer fails, however green.
package swarm
