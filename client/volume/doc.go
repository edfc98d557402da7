// Package volume decides for the volumes of one node: in which order they are claimed, staged,
// published, taken off and released. It is a step machine: it does no I/O, reads no clock and starts
// no goroutine. The core of a client owns it.
//
// # Order
//
// An allocation that wants a volume is a reference to it, with a [Usage]. For each volume:
//
//	claim       the servers give the claim, and a controller publishes the volume to the node
//	stage       once for each usage
//	publish     once for each reference; then the tasks of the allocation run
//	unpublish   after the tasks have ended
//	unstage     when no allocation has the usage published or is about to publish it
//	release     the servers take the claim back, and a controller unpublishes the volume
//
// One call for each volume is in flight. A call is repeated, with longer and longer waits, until it
// succeeds. Allocations with other mount options than a stage are refused while it exists. What
// cannot be undone for now keeps its place in the order: nothing is unstaged while it is published,
// and nothing is released while it is staged. A plugin without the capability to stage has no such
// calls. A call that a plugin does not implement is not repeated before the plugin starts again.
// Calls of a plugin that is away wait for it.
//
// # Records
//
// A [Record] of a volume is on the disk before a call that leaves something behind. It says what must
// be undone. Nothing else is needed after a crash: references are those of the records. A call that
// undoes something does not wait for the disk.
//
// After a boot of the machine nothing is mounted. A target that is missing in the mount table is
// published again.
package volume
