// Package scripted is a double of device plugins, in virtual time.
//
// A [Program] is a device plugin that is installed on a machine of package plugin/driver/scripted,
// and a [Plugin] is one generation of its process. A [Fault] changes the result of a call. The
// simulator plays the client over these doubles.
//
// Time and replies are as for the doubles of drivers: nothing blocks, and each answer comes later
// through a function, exactly once. None of the types is safe for concurrent use.
//
// # The table of devices
//
// The protocol does not state for which task a device is reserved. [Plugin.Reserve] has the start as
// a parameter of its own, which the plugin only notes: [Program.Rows] is what the devices are used
// for. The reservation gives the task the file [Path] of each device. The process table states which
// processes use it.
package scripted
