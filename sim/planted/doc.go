// Package planted judges the simulator. A simulator that finds nothing may be right about the
// product, or blind. So bugs are planted in a copy of the product, and the simulator has to
// find them.
//
// # A bug
//
// A bug is a file below bugs/. Its first line says what the code does wrong. The next
// paragraph says why an engineer would make that mistake, and what has to come together for it
// to show. Then the file says which guarantees the bug should break, and what it changes, as
// in a diff without line numbers:
//
//	A group without room gives up one more.
//
//	"Room for at least none" instead of "for at least one": [...]
//
//	breaks G1
//
//	@@ drainer/rules/budget.go
//	-	case class == cluster.MarkPaced && b.room() <= 0:
//	+	case class == cluster.MarkPaced && b.room() < 0:
//	 		return "the group has no room"
//
// The text before the change must be in the file exactly once. When the code moves on and a
// bug no longer applies, a test says so: the bug is expressed in the new code, or dropped. The
// product knows nothing of all this. A bug is compiled in by the go command's -overlay
// ([Bug.Build]).
//
// # What makes a good one
//
// It is a mistake that a tired engineer makes: a comparison that is off by one, a map with too
// small a key, a condition of two of which one is forgotten, a time that counts from the wrong
// beginning, a retry that is missing. Many of them survive the ordinary tests ([Survey]): they
// need several things that do not come together in a case that an author has thought of, and a
// simulator is there to find those.
//
// # Measuring
//
// The table in FOUND.md holds what was measured: which ordinary test finds a bug if one does,
// which invariant of the simulator finds it, after how many seeds, and to how few operations
// the scenario shrinks; and at which commit. Command find measures. [Demands] says what the
// table has to come up to, and a test fails if it does not: a bug that no seed finds is
// dropped, or judges and generators learn to see it. A few bugs may be found by an ordinary
// test alone: those that no simulated world can show.
package planted
