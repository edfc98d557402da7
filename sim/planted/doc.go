// Package planted judges the simulator. A simulator that finds nothing is either
// right about the product or blind, and nobody can tell which by looking; so bugs
// are planted in a copy of the product, and it has to find them.
//
// # A bug
//
// A bug is a file below bugs/. It begins with what the code does wrong, in one
// line, and with why somebody would make that mistake and what has to come
// together for it to show. Then it says which guarantees it should break, and
// what it changes, as in a diff without line numbers:
//
//	A group without room gives up one more.
//
//	"Room for at least none" instead of "for at least one": [...]
//
//	breaks G1
//
//	@@ drainer/recheck.go
//	-	case class == cluster.MarkPaced && g.room() <= 0:
//	+	case class == cluster.MarkPaced && g.room() < 0:
//	 		return "the group has no room"
//
// What is there before must be in the file exactly once. A bug that no longer
// applies, because the code has moved on, is planted anew or dropped: a test says
// so. The product knows nothing of all this. A bug is compiled in by the go
// command's -overlay ([Bug.Build]).
//
// # What makes a good one
//
// It is a mistake that a tired engineer makes: a comparison that is off by one, a
// map with too small a key, a condition of two of which one is forgotten, a time
// that counts from the wrong beginning, something that is not done again. Many of
// them survive the ordinary tests ([Survey]): they need several things that do
// not come together in a case that somebody has thought of, and finding those is
// what a simulator is for.
//
// # Measuring
//
// The table in FOUND.md holds what was measured: which ordinary test finds a bug
// if one does, which invariant of the simulator finds it, after how many seeds,
// and to how few operations the scenario shrinks; and at which commit. Command find
// measures it anew. What the table has to come up to is in [Demands], and a test
// fails if it does not: a bug that no seed finds is dropped, or judges and
// generators learn to see it.
package planted
