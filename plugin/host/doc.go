// Package host is the client's side of the plugin protocol: it runs the program of a driver or
// device plugin and speaks to it. Released plugins work unmodified.
//
// # Generations
//
// A [Program] is a plugin's file and configuration. [Program.Launch] begins a generation of it, an
// [Instance]: it takes over the process that an earlier client has left, or starts the program. A
// Program has one generation at a time. Launch begins the next one after the process of the last
// one has ended. The client waits between launches; this package does not start a plugin again by
// itself.
//
// An Instance of a driver implements client/driver.Driver. That of a device plugin has
// client/device.Plugin as its [Instance.Device]. Both have the same launch, handshake, record and end.
// When the process ends, [Instance.Done] is closed, and calls end with an error of class driver.Gone.
//
// # Taking over a process
//
// A plugin is in a session of its own and writes its log to a file, so it outlives the client. Its
// [Record] says where it is. The caller writes it durably before the plugin is configured. The next
// client trusts the pid in a record only if boot id and start time agree, and uses the process only
// if this process answers on the socket. A process that does not answer is killed. A process
// without a record, because the client died before it wrote one, is found by its socket and killed:
// it cannot have tasks.
//
// # Files
//
// The sockets of a plugin are in a folder of its own, of mode 0700. A plugin's file and the folder
// of that file belong to root or to the client's user, and no other user may write to them.
package host
