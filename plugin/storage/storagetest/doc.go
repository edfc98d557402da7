// Package storagetest is the conformance suite of storage plugins, as the client of a node calls
// them. It tests any [Plugin]: a double, or one behind a socket.
//
// The rules are S1 to S9. [Tests] lists them, and each has a line that states what it demands. The
// author of a plugin writes a [Harness] and calls [Run]:
//
//	func TestConformance(t *testing.T) {
//		storagetest.Run(t, storagetest.Harness{New: newNode})
//	}
//
// What the suite cannot do through the interface, the harness does: make a volume, look into the
// mount table, use a mount, and start the plugin again. The suite does what the client does before
// and after each call: it makes the folder above a target, and the folder of a stage.
//
// A rule that a plugin cannot keep must be named in [Harness].Skips with its reason. The suite
// skips nothing else: what the harness cannot do fails the test.
package storagetest
