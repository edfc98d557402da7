// Package rules decides what a drain may do. It is pure: every function reads a [View], a
// time and a [Policy], and nothing else. It starts no goroutine and keeps nothing.
//
// The drainer plans with it. Every FSM judges each entry with [Recheck] and
// [RecheckCompletions] in the state in which it applies the entry. Both use the same
// decisions, so the FSM accepts in a state what the drainer planned from that state. A
// refusal means that the state has changed in between.
//
// [Explain] derives from the same decisions why each allocation is still on its node.
package rules
