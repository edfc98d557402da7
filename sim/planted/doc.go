// Package planted tests the simulator and the tests. It plants bugs in a copy of the product. A
// seed, a scenario or a named test must find each. A simulator that finds no bug may be right about
// the product, or unable to find any.
//
// # Which bugs
//
// Each guarantee G1 to G12 is the main one of at least two bugs, and each kind of bug that
// the product has had is there once or twice: missed wake-ups, stale dates, budget and slots
// used twice, cancel races, marks of older drains, clocks set back, retries, completion
// policies, stages, upgrades, the counts of the store, and re-checks. A bug is a mistake that
// an engineer makes. It is left out if another bug fails in the same way for the same reason.
//
// # A bug
//
// A bug is a file below bugs: a title, a reason, the guarantees, and edits.
//
//	A group without budget gives up one more allocation.
//
//	The comparison is written for the state after the mark [...]
//
//	breaks G1
//
//	@@ drainer/rules budget.admit
//	-class == cluster.MarkPaced && b.room() <= 0
//	+class == cluster.MarkPaced && b.room() < 0
//
// An edit names a package's folder and a function, with its receiver's type if it is a method.
// Its lines are marked as in a diff: "-" is old code, "+" is new code, and a space is both. New code
// may be missing: then the old one is deleted. The tokens are compared, so the file, the layout and
// the comments do not matter. The function must contain the old code exactly once, or a test fails
// and names the identifiers that are gone. Another test compiles all bugs. Quote whole expressions
// or whole statements, and little: the rest of the function may then change.
//
// One program is built with all bugs ([Plant], by the go command's -overlay). A changed
// function begins with its variants, and the environment variable [Variable] chooses one bug.
// The product contains none of them.
//
// # Finding them
//
//	go run ./sim/planted/find [-seeds N] [-stale] [NAME...]
//
// finds the named bugs, or all. It writes into FOUND.md the first small seed that fails with a bug,
// or else the first of sim/scenarios, or else the first test of a simulated node, if the client has
// the bug, of the changed packages and of the drainer. Run it when a bug, the generator of seeds or
// a judge has changed. All bugs take hours. With -stale it leaves out the bugs that their rows
// still find, which takes minutes. [Table.Check] defines how complete the table must be, and a test
// fails if it is not.
package planted
