// Package mock is a task driver whose tasks have no processes. A task does what its config says:
// it starts late or not at all, ends after a time, ignores signals, and makes its driver hang or
// crash at a call. It is served over the plugin protocol like every other driver, so it tests
// clients, jobs and drains without side effects.
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
//	start_error_recoverable    ... and says that a repetition may succeed
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
// A task is a record of when it ends and how. The record is a file in the task's folder, written
// before each call is answered. Thus tasks outlive the driver's process as those of real drivers do:
// they "run" and end on time while there is no driver, a stop that has begun is finished, and the
// next process recovers them with their result. The record names the boot of the machine: tasks do
// not outlive that. Times are those of the wall clock; when it is set, recovered tasks end earlier or
// later. Files are not flushed to the disk, since nothing survives a loss of power anyway.
package mock
