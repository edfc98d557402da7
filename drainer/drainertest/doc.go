// Package drainertest tests a state store against what the drainer relies on.
//
// An embedder with a store of their own calls [TestStore] from a test. It makes
// random histories, commits each to the store, and asks of every view what a dumb
// model of the same history knows: what is there, in which order it comes, and that
// a feed tells of all that it has to tell of. See drainer.View and drainer.Feed for
// what is asked.
//
// Its tests are the cases: the stories of sim/scenarios/case-*.drain, each told again
// with a leader change at every step and a failed and an unknown write at every write.
package drainertest
