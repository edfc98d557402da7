// Package drainertest tests the three parts that an embedder gives to the drainer: a store, a
// state machine and an applier, and its scheduler if it replaces before it stops. Each test returns
// nil, or an error that names the entry, row or write.
//
//	TestStore    views, feeds and wake-ups: see rules.View and drainer.StateReader
//	TestVolumes  views and feeds of a store with volumes: see rules.VolumeView
//	TestFSM      entries of marks and completions, and requests: see package lifecycle
//	TestApplier  answers to writes: see drainer.RaftApplier
//	TestSurge    replacements that stand by, of a scheduler with its state machine: see
//	             rules.SurgeView
//
// All tests except TestVolumes have time limits, [CallLimit] and [TestLimit].
//
// The tests of this package run each of them on implementations with deliberate mistakes.
package drainertest
