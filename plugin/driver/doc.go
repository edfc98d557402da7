// Package driver defines the interface between the client of a node and a task driver, in plain Go
// types. It does no I/O. Begin with [Driver].
//
// A driver is a separate program that speaks the plugin protocol. Package plugin/host starts it
// and implements [Driver] over its connection. Package plugin/driver/drivertest tests any
// implementation.
//
// # Generations
//
// A [Driver] is one generation of a driver's process. When the process dies, all calls in flight
// return an error of class [Gone], and all later calls too. The client starts the program again and
// gets another Driver. Tasks that live outside the driver's process continue to run; the client
// hands each of them to the new Driver with [Driver.Recover].
//
// # Order of calls
//
// For one task the client calls Start or Recover, then Wait once, which it keeps open, then Stop
// at most once at a time, then Destroy with force. It never uses a task id for two starts.
package driver
