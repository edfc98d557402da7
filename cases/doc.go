// Package cases tests the drainer by stories: the files sim/scenarios/case-*.drain. A test
// plays each story with the real state store, FSM, drainer and scheduler, in one goroutine.
// Then it plays the story again with a leader change at every step and with a failed and an
// unknown write at every write. The drains of a story must end alike each time, and no
// guarantee may break.
package cases
