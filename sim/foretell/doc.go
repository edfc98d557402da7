// Package foretell compares plans with what happens.
//
// [Compare] draws a cluster from a seed and lets it run in a world: jobs start, nodes drain and become eligible
// again, so that the state learns how long allocations take. Then it stops at a quiet moment and plans drains of
// random nodes ([plan.Answer]). It plays the same drains many times in worlds that begin with the same state, each with
// another seed of its clients and of its delays, and counts how often the plan was right. Only the simulated
// clients have the distributions of the times: each group has its own ones.
//
// A [Report] sums up many worlds, and has the bounds of promise F3.
package foretell
