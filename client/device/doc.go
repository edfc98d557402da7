// Package device holds what the client of a node asks of a device plugin, in plain Go types. It does
// no I/O.
//
// A device plugin is a separate program that speaks the plugin protocol. Package plugin/host starts
// it and implements [Plugin] over its connection. Package client/device/devicetest tests any
// implementation.
//
// # Generations
//
// A [Plugin] is one life of a plugin's process. When the process dies, all calls in flight return an
// error of class driver.Gone, and all later calls too. The client starts the program again and gets
// another Plugin, which knows the same devices by the same ids. Tasks keep their devices meanwhile: a
// plugin holds nothing for a task that its end would take away.
//
// # Owners
//
// The protocol has no call that gives a device back. The plugin does not know which task has a
// device: only the client's ledger does. Reserve prepares devices, any number of times.
//
// # Bad reports
//
// A fingerprint and a reservation come from outside. [Check] returns the part of a fingerprint that
// may be used: one bad group does not lose the others. A bad reservation is an error of the start:
// [Merge] refuses it.
package device
