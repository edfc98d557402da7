// Package rawexec is the raw_exec driver: it runs a program of the node as a task, without
// isolation. "nodedrain plugin raw_exec" serves it.
//
// Each task has a shim (package shim), which outlives driver and client. The driver itself keeps
// nothing that it cannot learn again: the folder of a task follows from its id, and the shim's record
// in it says the rest. So Inspect and Destroy work for a task whose start was not answered, because
// the driver died in it.
//
// # Processes
//
// All processes of a task are in one control group: the one that the host passes, if it is the group
// of this task, or else one that the driver creates. A group that has processes before the start is
// refused. Where the machine has no control groups, the processes below the shim are the task.
//
// The task has ended when its first process has ended: the shim then kills all others. Wait, Stop and
// Destroy with force return when no process lives. A process that cannot be killed (state D) keeps the
// task running; Inspect describes it under "waits_for", and an event names it.
//
// If the shim dies, the kernel kills the first process, the driver kills the others, and the exit
// result is lost: Wait says so.
//
// # Config
//
// Of the plugin: "enabled" (default false) and "shim_dir", the folder of the shims (default
// /run/nodedrain/shims, for other users than root a folder below the temporary one). It must lie on a
// file system that a boot clears, or on a disk.
//
// Of a task: "command", and "args", a list. A command without a slash is looked for in the task's
// folder, its folder "local", and then in the PATH of the task's environment. Other relative commands
// are below the task's folder.
//
// # Logs
//
// The log paths of a task are FIFOs, devices or files, which the task then writes itself. A FIFO needs
// no reader and outlives one. A path in the form
//
//	rotate:/logs/web.stdout?max_files=10&max_file_size=10485760
//
// makes the shim write files /logs/web.stdout.0 and so on, with package tasklog. The attribute
// driver.raw_exec.rotates_logs tells a host that it may use this form.
package rawexec
