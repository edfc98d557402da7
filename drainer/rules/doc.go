// Package rules decides what a drain may do. It is pure: every function reads a [View], a time and
// a [Policy], and nothing else. It starts no goroutine and has no state.
//
// The drainer plans with this package. Every FSM checks each entry with [Recheck] or
// [RecheckCompletions] in the state in which it applies the entry. Plan and check use the same
// decisions, so the FSM refuses an item only if the state has changed since the plan.
//
// [Explain] uses the same decisions to report why each allocation is still on its node.
package rules
