// Package device defines the interface between the client of a node and a device plugin, in plain
// Go types. It does no I/O. Begin with [Plugin].
//
// A device plugin is a separate program that speaks the plugin protocol. Package plugin/host starts
// it and implements [Plugin] over its connection. Package plugin/device/devicetest tests any
// implementation.
//
// # Generations
//
// A [Plugin] is one process of a plugin. When the process dies, all calls in flight and all later
// calls return an error of class driver.Gone. The client starts the program again and gets another
// Plugin, which has the same devices with the same ids. Tasks keep their devices meanwhile, because
// the process of a plugin holds no resources for them.
//
// # Owners
//
// The protocol has no call to release a device. The plugin cannot determine which task has a device:
// only the client's ledger does. Reserve prepares devices, and may be called any number of times.
//
// # Bad reports
//
// The client does not trust fingerprints and reservations. [Check] returns the valid groups of a
// fingerprint: a bad part costs no more than this part. [Merge] refuses a bad reservation, and
// the start of the task fails.
package device
