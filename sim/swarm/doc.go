// Package swarm generates scenarios from seeds, plays many of them, and counts rare events.
// "nodedrain sim swarm" and the continuous integration use it. Begin with [Play].
//
// # From a seed
//
// [Generate] is a function: equal seeds and sizes give equal scenarios. It first draws the traits of
// the scenario, half of all traits on average. If every scenario had all traits, the traits would hide
// each other. Then it draws the nodes, jobs and allocations, then the events, then the faults. All of
// them are explicit in the [scenario.Scenario]. So a failing seed can be saved as a file and shrunk.
//
// Each part draws from its own stream, so that a change of one part does not shift the draws of
// another. All faults end at the calm. In some seeds a part of the cluster stays broken that the
// drains do not need: a minority of the servers, a node, an allocation that never stops. Most runs end
// with their last drain.
//
// # Many seeds
//
// [Play] plays seeds on several workers. One worker plays each seed, without other goroutines. Some
// seeds are played twice, and fail if the two runs differ.
//
// # Rates
//
// A swarm tests only what happens in its runs. An [Observer] counts the rare events of a run. [Rates]
// are the least shares of runs with each event. A swarm fails if an event is rarer than its rate, even
// if every seed passes.
package swarm
