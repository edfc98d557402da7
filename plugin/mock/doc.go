// Package mock is a task driver whose tasks have no processes. The config of a task states what the
// task does: it starts late or not at all, ends after a time, ignores signals, or makes its driver
// hang or crash at a call. The driver uses the plugin protocol like every other driver. So it can
// test clients, jobs and drains without side effects.
//
// # Tasks
//
// All keys of a task's config are optional. Durations are texts such as "10s".
//
//	run_for                    the task ends after this time; without it, it runs until a signal
//	exit_code, exit_signal     its result then
//	stdout_string              what it writes to its standard output when it starts
//	stop_ignore                it ignores all signals but SIGKILL
//	kill_after                 the time from another signal to its end
//	signal_codes               exit codes by the name of a signal; it ignores signals that are not here
//	start_block_for            StartTask takes this time, also if the host has given up
//	start_error                StartTask fails with this text
//	start_error_recoverable    ... and states that a repetition may succeed
//	hang_at                    this call takes no effect and has no answer, each time
//	crash_at                   at this call the driver's process ends, once for each start of a task,
//	                           after the call has taken effect
//
// Calls are StartTask, RecoverTask, WaitTask, StopTask, DestroyTask, InspectTask and SignalTask.
//
// The plugin's own config has the keys unhealthy, a text that makes the driver unhealthy, and
// fingerprints, the number of reports of its health that it sends one after the other.
//
// # State
//
// A task is a record that describes when and how it ends. The record is a file in the task's folder. The
// driver writes it before it answers a call. So tasks continue when the driver's process ends, like
// tasks of real drivers: they end in time while no driver runs, a started stop is finished, and the
// next process recovers them with their result. The record names the boot of the machine, because
// tasks end with it. Times are wall-clock times: if the clock is set, recovered tasks end earlier
// or later. Files are not flushed to the disk, because tasks do not survive a power failure.
package mock
