// Package rawexec is the raw_exec driver: it runs a program of the node as a task, without
// isolation. "nodedrain plugin raw_exec" serves it.
//
// Each task has a shim (package shim), which continues to run when the driver or the client ends.
// The driver has no state that it cannot restore: the name of a task's folder is derived from the
// task's id, and the shim's record in it contains the rest. So Inspect and Destroy also work if the
// driver died during the start of the task.
//
// # Processes
//
// All processes of a task are in one control group. If the host passes a group for this task, the
// driver uses it. Otherwise the driver creates one. A group that already has processes is refused.
// The descendants of the shim are also the task's: they may have left the group, and a machine may
// have no control groups.
//
// The task has ended when its first process has ended: the shim then kills all others. Wait, Stop
// and Destroy with force return when all processes have ended. While a process cannot be killed
// (state D), the task counts as running. Inspect describes the process under "waits_for". If it remains
// for a second after the first process has ended, an event names it, with the same annotation.
//
// If the shim dies, the kernel kills the first process, and the driver kills the others in the control
// group, or in the session of the task if there is no group. A process that has left it stays. The exit
// result is lost, and Wait returns an unknown result.
//
// # Config
//
// The plugin has the keys "enabled" (default false) and "shim_dir", the folder of the shims. The
// default is /run/nodedrain/shims, or a folder below the temporary folder for users other than
// root. The folder must be on a local disk, or on a file system that is empty after a boot.
//
// A task has the keys "command" and "args", a list. A command without a slash is searched in the
// task's folder, in its folder "local", and then in the PATH of the task's environment. Other
// relative commands are relative to the task's folder.
//
// # Logs
//
// The log paths of a task are FIFOs, devices or files, which the task writes itself. A FIFO needs
// no reader at the start, and its reader may restart. A path in the form
//
//	rotate:/logs/web.stdout?max_files=10&max_file_size=10485760
//
// means that the shim writes the files /logs/web.stdout.0 and so on, with package tasklog. The
// attribute driver.raw_exec.rotates_logs states that a host may use this form.
package rawexec
