// Package sdk serves a task driver or a device plugin. An author implements [Driver] with the types
// of package plugin/driver and calls [Serve], or implements [Device] with the types of package
// plugin/device and calls [ServeDevice]:
//
//	func main() { sdk.Serve(&coffee{}) }
//
// Copy examples/driver or examples/device to start. docs/plugins.md and docs/device-plugins.md
// explain how to write a plugin, and "nodedrain plugin test" tests its program.
//
// Optional calls are separate interfaces. For a driver these are [Signaler], [Execer],
// [StreamExecer], [StatsSource], [EventSource], [Networker] and [Closer]. For a device plugin these
// are [DeviceStatsSource] and [Closer]. If a plugin does not implement an interface, the server
// answers its calls with "unsupported".
//
// Errors: return [driver.ErrUnknownTask] for a task that the driver does not have, and [Recoverable] for a
// start that may succeed later. All other errors are final.
//
// Each call has its own goroutine, which the server owns. Its context ends when the host cancels
// the call or dies. A plugin must be safe for concurrent use.
package sdk
