// Package plugintest runs the conformance suites for a plugin's program, with real processes and
// over the plugin protocol. [Harness] builds a harness of package drivertest from the [Options] of
// a driver, and [DeviceHarness] builds a harness of package devicetest from the [DeviceOptions] of
// a device plugin. [StorageHarness] builds a harness of package storagetest from the
// [StorageOptions] of a storage plugin, which speaks CSI. [Read], [ReadDevices] and [ReadStorage]
// read the options from a file, for plugins outside this repository. [Open] reads the type
// of a program.
//
// The harness of a driver finds the processes of a task by a variable in their environment. So it
// must be able to read /proc of the tasks, and the driver must run tasks on this machine with the
// given environment.
package plugintest
