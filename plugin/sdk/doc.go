// Package sdk serves a task driver or a device plugin. An author writes a [Driver] in the plain types of
// package client/driver and calls [Serve], or a [Device] in those of package client/device and calls
// [ServeDevice]:
//
//	func main() { sdk.Serve(&coffee{}) }
//
// examples/driver and examples/device are plugins to copy, docs/plugins.md and docs/device-plugins.md
// teach how to write one, and "nodedrain plugin test" tests its program.
//
// What a driver may leave out is an interface of its own: [Signaler], [Execer], [StreamExecer],
// [StatsSource], [EventSource], [Networker], [Closer]. What a device plugin may leave out is
// [DeviceStatsSource] and [Closer]. Calls of those that a plugin does not implement answer
// "unsupported".
//
// Errors: return [driver.ErrUnknownTask] for a task that the driver does not know, and [Recoverable] for a
// start that may succeed later. All other errors are final.
//
// Each call has its own goroutine, which the server owns. Its context ends when the host gives up or
// dies. A plugin must be safe for concurrent use.
package sdk
