// Package host is the client's side of the plugin protocol. It runs the program of a driver or
// device plugin and calls it. Released plugins work unmodified.
//
// # Generations
//
// A [Program] is a plugin's file and configuration. [Program.Launch] starts a generation of it, an
// [Instance]: it takes over the process of an earlier client, or starts the program. A Program has
// one generation at a time. Launch starts the next generation after the process of the last one has
// ended. This package does not restart a plugin by itself: the client does, and waits between
// launches.
//
// An Instance of a driver implements plugin/driver.Driver. For a device plugin [Instance.Device]
// returns a plugin/device.Plugin. Launch, handshake, record and end are the same for both. When the
// process ends, [Instance.Done] is closed, and calls return an error of class driver.Gone.
//
// # Taking over a process
//
// A plugin runs in a new session and writes its log to a file, so it continues to run when the
// client dies. Its [Record] identifies the process. The caller writes the record durably before the
// plugin is configured. The next client trusts the pid in a record only if boot id and start time
// are equal, and uses the process only if this process answers on the socket. It kills a process
// that does not answer. If the client died before it wrote the record, the next client finds the
// process by its socket and kills it: such a process cannot have tasks.
//
// The process of a device plugin is ended and started again in place of a takeover. It holds no
// task, and many device plugins report only changes: they would not report their devices again.
//
// # Files
//
// Each plugin has a separate folder of mode 0700 for its sockets. A plugin's file and the folder of
// that file must belong to root or to the client's user, and other users must not be able to write
// to them.
package host
