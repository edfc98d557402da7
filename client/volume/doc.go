// Package volume decides in which order the volumes of one node are claimed, staged, published,
// unpublished, unstaged and released. It is a step machine: it does no I/O, reads no clock and
// starts no goroutine. The core of a client owns it.
//
// # Order
//
// An allocation that uses a volume is a reference to the volume, with a [Usage]. These are the
// calls for each volume:
//
//	claim       the servers give the claim, and a controller publishes the volume to the node
//	stage       once for each usage
//	publish     once for each reference; then the tasks of the allocation run
//	unpublish   after the tasks have ended
//	unstage     when no allocation has the usage published or is about to publish it
//	release     the servers take the claim back, and a controller unpublishes the volume
//
// Each volume has at most one call in flight. A call is retried with backoff until it succeeds.
// While a stage exists, an allocation with different mount options is refused. While something of a
// volume is on the node, a claim that names another external id or plugin waits, or is refused if an
// allocation keeps the mount. A failure does not
// change the order: a usage is not unstaged while it is published, and not released while it is
// staged. For a plugin without the capability to stage, the stage and unstage calls are skipped. A
// call that a plugin does not implement is not retried before the plugin restarts. While a plugin
// is down, its calls wait.
//
// # Visits
//
// A step visits a volume only if something has happened to it, or if a time has come that its last
// visit requested. A step ends when it has visited all volumes that a visit has changed.
// [Volumes.Moved] names the allocations of the visited volumes.
//
// # Records
//
// A [Record] of a volume is on the disk before a call that leaves something behind. It states what
// must be undone. After a crash only the records are needed: they contain the references. A call
// that undoes something does not wait for the disk.
//
// After a boot of the machine nothing is mounted. If a target is missing in the mount table, the
// volume is published again, but not before a task of its allocation was observed running or will start:
// the record may be old.
package volume
