// Package lint holds the project's own source checks. They run as ordinary
// tests, so that `go test work` is all there is to run.
//
// # The loop rule
//
// Whatever decides neither blocks, sleeps, starts goroutines nor reads a clock,
// and gives the same answer on every server: [CheckLoopRules] walks everything
// that can be reached from the steps, the re-check and the FSM ([LoopRule]) and
// reports clocks, goroutines, channel operations that may block, selects that
// choose at random, randomness, the outside world, and ranges over maps whose
// order can be seen.
//
// The walk is conservative. A function that is mentioned counts as called; a
// call of an interface method reaches every implementation in the module; a call
// of a function held in a struct field reaches every function the module puts
// there; function literals belong to the function around them; a value handed to
// other people's code as an interface is called back. Code outside the module is
// not walked: it has to come from a package on a list, and must not be one of the
// functions on another. What the walk cannot see is a function that reaches a
// field through a parameter: such functions are injected, and are their giver's
// affair.
//
// A range over a map passes if what it does cannot tell one order from another,
// or if what it collects is sorted afterwards. A loop that is sound for another
// reason says so on its line or the line above:
//
//	for id := range m { //lint:order one entry at most
//
// # The other checks
//
// [CheckImports] keeps packages from importing what they must not, each ban with
// its reason. [CheckModules] keeps the modules that embedders require from importing the
// rest of the repository. [CheckFiles] and [CheckDeclarations] hold the habits that
// CONTRIBUTING.md describes, [CheckLogs] those of log lines. Each check has fixtures
// below testdata: what it must find, marked by a want comment, beside what it must let
// pass.
package lint
