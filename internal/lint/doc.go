// Package lint holds source checks that no linter has. They run as ordinary tests. The linters run
// in .ci/run.
//
// # The loop rule
//
// Code that decides does not block, sleep, start goroutines or read a clock, and it gives the same
// answer on every server. [CheckLoopRules] walks all code that is reachable from the steps, the
// re-check and the FSM ([LoopRule]). It reports clocks, goroutines, channel operations that may
// block, selects that choose at random, randomness, I/O, and ranges over maps
// without a reason.
//
// The walk is conservative:
//
//   - A function that is mentioned counts as called.
//   - A call of an interface method reaches every implementation in the module.
//   - A call of a function in a struct field reaches every function that the module puts into it.
//   - A function literal belongs to the function around it.
//   - A value that other modules receive as an interface may have all its methods called.
//
// The walk does not enter code outside the module. Such code has to be in a package on a list, and
// must not be a function on another list. The walk does not see a function that reaches a field
// through a parameter: such functions are injected, and their caller is responsible for them.
//
// A range over a map has a comment with its reason on its line or the line above. A use of maps.Keys, maps.Values
// and maps.All passes if it is sorted at once, or stored in a map:
//
//	for id := range m { //lint:order one entry at most
//	for _, id := range slices.Sorted(maps.Keys(m)) {
//
// # The other checks
//
// [CheckImports] holds the bans of imports, each with its reason, and [CheckFloors] the order of the folders.
// [CheckMethods] bounds the methods of a type, [CheckCounts] the files of a package. [CheckVariables] finds package
// variables. [ReadFields] lists the fields of rows that decisions read. Each check
// has fixtures, in its test or below testdata with a want comment for each finding.
package lint
