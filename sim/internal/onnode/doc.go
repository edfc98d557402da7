// Package onnode judges the client of a simulated node. A [Judge] reads the process table, the
// table of devices, the mount table, the claims, the calls to the storage, the records on the disk,
// the reports of the client, the answers of the servers, and the reports of device plugins. It
// shares no code with the client.
//
// Trouble is a fault of the machine: a client, plugin or shim that dies, a plugin that hangs, a
// restart of the machine, a full disk, a lost record, a call for a cgroup that the kernel refuses. A process belongs to a task if it is in the
// task's cgroup, or in a container below it. The judge ignores processes that have left their
// cgroup.
//
// # N1, one copy
//
//   - A task's process starts only while no process of another start of the task runs.
//   - At that time a record on the disk names the start.
//   - A record is removed, or names another start, only when no process of the allocation or the
//     start runs. The exception is an allocation whose record was lost. The client must destroy its
//     processes.
//
// A container whose driver had trouble is not judged here, in N2, N3, N6 and N8, because only the
// driver can remove it.
//
// # N2, grace
//
//   - A task gets its kill signal only if its allocation must stop, or if a check restarts it: the target has failed so often
//     in a row after the grace of check_restart, since the task and the client began. Then it restarts soon. There are five
//     other reasons. The servers
//     stop it, or have not answered for the stop_on_client_after of the group, and the
//     shutdown delays of the group and of the task have passed. Or the allocation has run for its max_run_duration,
//     and the same delays have passed. Or another task of the allocation has
//     ended, and the shutdown delay of the task has passed since then. Or a record or a report states
//     that a task has failed or restarts. A driver that hangs may send the signal after the loss of this
//     record. The record may be saved a little later. With a full disk, or if the
//     client dies before, it is missing. Or the task is a poststop task that has used its time.
//   - At that time the tasks that must stop earlier have no process, except processes that cannot
//     die. The order is: leader, main tasks, sidecars. A task that a check restarts ends alone.
//   - A client that has not reached the servers for stop_on_client_after stops the allocation. If that is shorter than the
//     TTL in the last answer to a heartbeat, the TTL counts, up to 30 seconds more than stop_on_client_after. Its
//     tasks end within the stop time and a minute, unless there was trouble. If the client is dead,
//     its watchdog does the same, and trouble other than a full disk is no excuse. A watchdog
//     does not reach a container.
//     After the loss of its record an allocation may run again, and the time counts again.
//   - A client stops an allocation that has run for the max_run_duration of its group. The time counts from the first start
//     of a task in this boot for which the client surely has the answer of the driver. Its tasks end within the stop time
//     and ten seconds, or five minutes after trouble. Then it is not reported as complete.
//   - SIGKILL follows the kill signal after the kill timeout, and at most a second later, or at most six seconds for a
//     contained task, which only its driver can kill. The upper
//     limit holds while the same client runs, or while its watchdog does, unless the kernel refuses. A watchdog may kill earlier
//     a task that should have ended before.
//   - SIGKILL without a kill signal is only for a task that the client cannot keep: a record states
//     after trouble that the task is lost, or the task has no record, or its driver was down for
//     the whole grace.
//
// SIGKILL from the kernel or from a fault is not judged.
//
// # N3, truth
//
//   - When an allocation is reported as terminal, no process of it runs, and nothing is left of a
//     start that has one of its devices.
//   - At that time nothing is mounted for it. A staged volume belongs to an allocation if this is
//     the only one with a claim for it. The exception is a volume that the report names, after the
//     last process of the allocation has been dead for the hold limit.
//   - After that no process of it starts, unless the disk was full.
//
// # N4, nothing lost
//
//   - A reported exit code is the exit code of an ended process of the task. It is unknown only
//     after trouble, or if the client had to have a container destroyed after its grace.
//   - The record of an allocation is removed only when the servers have taken a report that contains
//     its end, unless the record was lost before.
//   - In a record that a client saves, all times on the boot clock have passed in this boot. The wait
//     for a restart ends after the delay and the interval of its policy at the latest.
//   - When a node has had no trouble for some time, the servers have the state in its records, each
//     allocation that has not ended for the servers and that the client has received has a record, no
//     task that must stop runs longer than permitted, and each process has a record, unless the
//     record was lost and the process cannot die.
//
// # N5, plugins die
//
//   - At most one process of each driver or device plugin runs.
//   - Three starts of a plugin take five seconds or more, unless the first process ran for two
//     minutes.
//   - When a node has had no trouble for some time, each of its drivers and device plugins runs.
//
// # N6, volume order
//
//   - No call is out of order. The double of the storage, package plugin/storage/scripted, checks
//     this.
//   - A volume is claimed, staged and published only if its record on the disk states it. When the
//     volume is unstaged, the record does not state that it is staged, unless the disk was full.
//     After the loss of a volume's record this is not judged.
//   - A task's process starts only when all volumes of its allocation are published for it. A
//     volume is unpublished only when no process of the allocation runs.
//   - When a node has had no trouble for some time, nothing is mounted without a claim, an ended
//     allocation has no claim, and an allocation that should run and has a claim has the volume. A
//     volume may wait for a plugin that does not run, and for processes that use it. To be mounted it
//     may also wait for the end of a plugin that was requested to stop.
//
// # N7, plugins last
//
// A plugin of type node serves the volumes that are mounted through it. A controller serves the
// claims whose release a client has started and the servers have not finished. A monolith serves
// both.
//
//   - A task that is a storage plugin gets its kill signal, or SIGKILL without one, in these cases
//     only: it serves nothing; its allocation had to stop, and the hold limit has passed since
//     then; its record states that it restarts; or, for the present client, another allocation with
//     the same plugin id may run. Tasks that the client cannot keep, or that it has no record of, are
//     not judged.
//   - When a node has had no trouble for some time, an allocation that must stop and has had no
//     process for the hold limit has ended in its record, even if its volumes are still mounted.
//
// # N8, devices
//
// The owner of a device is the start for which it was reserved last. A start has remains while a
// process of it runs or the cgroup of its task exists.
//
//   - A start reserves a device only if another owner has no remains, and the newest report of a
//     plugin to this client contains the device as healthy. A record on the disk names the start,
//     and no process of the start has started.
//   - A task's process starts with exactly the devices that the servers assigned to the task. Its
//     start owns them, and no process of another start has one of them.
//   - A task does not get its kill signal because its device is unhealthy or has disappeared.
//   - A start that does not get its devices has a cause: trouble in the last minutes, or a device that
//     no plugin has reported to this client as healthy.
//   - When a node has had no trouble for some time, no allocation has waited for five minutes for
//     devices that are healthy and free. It may wait for its volumes, for data, for an allocation that it
//     replaces, and for the remains of an allocation whose record was lost.
//
// # N9, health
//
//   - If a client has been running and connected, with space on its disk, for twelve seconds, each
//     service or system allocation has a verdict one second after its healthy deadline. The deadline counts
//     from the time when a client first received the allocation in this boot, as far as records
//     contain it, or from the record with the end of its wait for data. An allocation that must stop or has ended needs no verdict.
//   - At a healthy verdict, each task that must run runs, and has run for the minimum healthy time,
//     and each one-shot task has exited with 0. After k verdicts false the minimum is 2^k times as
//     long, at most the healthy deadline. The target of no check that decides has not passed for longer
//     than the client takes to find it: interval and timeout for each failure that the check may have. As the targets
//     answered since the task and the client began, the check passes, and has passed for the minimum. k falls by one for each healthy deadline in which the
//     verdict was true. Five seconds are between two healthy verdicts.
//   - The healthy verdict is not late. If the client works and its drivers had no trouble, it is there two
//     seconds after the tasks have run for the minimum healthy time, or, after an earlier verdict, for the
//     healthy deadline. They count from the record that states that they run.
//   - A healthy allocation becomes unhealthy only if a process of a task that must run has ended, if the
//     target of a check did not pass shortly before, if a check restarts a task, or after trouble of its driver, shim or machine.
//   - A record is not healthy when a task that must run has been dead for longer than a second, unless
//     its driver had trouble, and when the client has had enough time to find that the target of a check
//     does not pass.
//   - When faults have ended for some time, no row of the servers has a healthy verdict whose task
//     has been dead for longer than a report takes. An allocation that must stop is not judged.
//
// # N12, quiet
//
//   - A client begins an effect for one subject at most 50 times in a second. The subject is a task, an
//     allocation, a volume of an allocation, or a plugin. A retry waits for 200 ms at least, so a
//     client that works has begun 16 at most, and a loop without a wait begins hundreds.
package onnode
