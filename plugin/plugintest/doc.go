// Package plugintest runs the conformance suite of task drivers over a driver's program, in real
// processes and over the plugin protocol. [Harness] makes package drivertest's harness out of
// [Options]; [Read] reads these from a file, for a driver that is not part of this repository.
//
// The harness finds the processes of a task by a variable in their environment, so it needs to read
// /proc of the tasks, and a driver whose tasks run on this machine with the environment that they
// are given.
package plugintest
