// Package drivertest is the conformance suite of task drivers. It tests any implementation of
// [driver.Driver]: a double, or a plugin in a process of its own.
//
// The tests are D1 to D20. [Tests] lists them, each with its demand. An author of a driver writes a
// [Harness] and calls [Run]:
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, drivertest.Harness{New: newNode, Config: config})
//	}
//
// The suite sees only the interface of a driver. The harness shows the processes of a task and its
// output through [Node].
//
// # Skips
//
// A test that a driver cannot pass must be named in [Harness].Skips with its reason. The suite
// skips nothing else: a task that the harness cannot configure fails the test.
//
// # Time
//
// All durations are multiples of [Harness].Unit. With the zero unit the suite takes about ten
// seconds in real time. With [Harness].Around the tests run in the time of testing/synctest.
package drivertest
