// Package cases tests the drainer with the scenarios sim/scenarios/case-*.drain. A test plays each
// with the real state store, FSM, drainer and scheduler, in one goroutine. Then it plays variants:
// with an election at each step, and with each fate of a write at each write of the drainer. The
// drains of all variants must end like the original, and no guarantee may break.
package cases
