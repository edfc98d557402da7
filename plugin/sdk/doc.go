// Package sdk serves a task driver as a plugin. An author writes a [Driver] in the plain types of
// package client/driver and calls [Serve]:
//
//	func main() { sdk.Serve(&coffee{}) }
//
// examples/driver is a driver to copy, docs/plugins.md teaches how to write one, and "nodedrain plugin
// test" tests its program.
//
// What a driver may leave out is an interface of its own: [Signaler], [Execer], [StreamExecer],
// [StatsSource], [EventSource], [Networker], [Closer]. Calls of those that a driver does not implement answer
// "unsupported".
//
// Errors: return [driver.ErrUnknownTask] for a task that the driver does not know, and [Recoverable] for a
// start that may succeed later. All other errors are final.
//
// Each call has its own goroutine, which the server owns. Its context ends when the host gives up or
// dies. A driver must be safe for concurrent use.
package sdk
