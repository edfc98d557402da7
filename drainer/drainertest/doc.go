// Package drainertest tests what an embedder gives to the drainer: a store, a state machine
// and an applier. Each test returns an error that names the matter, or nil.
//
//	TestStore    views, feeds and wake-ups: see rules.View and drainer.StateReader
//	TestFSM      entries of marks and completions, and requests: see package lifecycle
//	TestApplier  answers to writes: see drainer.RaftApplier
//
// Every test has time limits, [CallLimit] and [TestLimit].
//
// Its own tests hold each of the three against deliberate mistakes.
package drainertest
