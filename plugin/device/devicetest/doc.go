// Package devicetest is the conformance suite of device plugins. It tests any implementation of
// [device.Plugin]: a double, or a plugin in a process of its own.
//
// The rules are V1 to V9. [Tests] lists them, each with its demand. V2, V4 and V5 are missing: they
// are rules for the client, and docs/plugin-tests.md names their tests. An author of a plugin
// writes a [Harness] and calls [Run]:
//
//	func TestConformance(t *testing.T) {
//		devicetest.Run(t, devicetest.Harness{New: newNode, Empty: newEmptyNode, Wrong: launchWrong})
//	}
//
// The suite uses nothing of a plugin but its interface. What it cannot do through the interface,
// the harness does: kill and launch the plugin, and change the devices of the machine.
//
// # Skips
//
// A rule that a plugin cannot keep must be named in [Harness].Skips with its reason. The suite
// skips nothing else: what the harness cannot do fails the test.
//
// # Time
//
// All durations are multiples of [Harness].Unit. With the zero unit the suite takes a few seconds
// in real time. With [Harness].Around the tests run in the time of testing/synctest.
package devicetest
