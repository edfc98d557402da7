// Package scripted is a double of task drivers and of the machine that they run on, in virtual
// time.
//
// A [Machine] is one node: its boots, processes and cgroups. A [Program] is a driver that is
// installed on it, and a [Driver] is one generation of the driver's process. Each task follows a
// [Script], and a [Fault] changes the result of a call. The simulator runs the client over these
// doubles, and its judges read the machine: when each process ran, and when it got which signals
// from which sender.
//
// # Time
//
// Nothing here blocks, starts goroutines or reads a clock. All time comes from a [Clock]. Every
// call returns at once; its answer comes later through the reply function, exactly once, and never
// before the call has returned. Equal calls at equal times give equal results. None of the types is
// safe for concurrent use.
//
// A [Loop] is a clock in real time or in the time of testing/synctest. [Block] and [Follow] wait for
// answers over it. The conformance suites run over doubles in this way.
//
// # What outlives what
//
//	driver's process ends    calls and streams in flight end with class Gone. Tasks: see [Parent].
//	shim ends                its task is killed, and its exit result is lost.
//	task's process ends      children with setsid run on, in the task's cgroup.
//	machine halts            everything ends. Handles of an earlier boot cannot be recovered.
package scripted
