// Package plugintest runs the conformance suites over a plugin's program, in real processes and over
// the plugin protocol. [Harness] makes package drivertest's harness out of the [Options] of a driver,
// and [DeviceHarness] that of package devicetest out of the [DeviceOptions] of a device plugin. [Read]
// and [ReadDevices] read these from a file, for a plugin that is not part of this repository. [Open]
// finds out what a program is.
//
// The harness of a driver finds the processes of a task by a variable in their environment, so it needs
// to read /proc of the tasks, and a driver whose tasks run on this machine with the environment that
// they are given.
package plugintest
