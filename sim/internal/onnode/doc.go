// Package onnode judges the client of a simulated node. A [Judge] reads the process table, the table of
// devices, the mount table, the claim book, the calls that the storage has got, the records on the disk, the
// reports, what the servers want, and what device plugins tell. It shares no code with the client.
//
// Trouble is a fault of the machine: a client, driver or shim that dies, a driver that stands still,
// a restart of the machine, a full disk, a lost record. A process is that of a task if it is in the
// task's cgroup. A process that has left it is the business of its driver.
//
// # N1, one copy
//
//   - A task's process starts only while no process of another start of the task lives.
//   - At that time a record on the disk names the start.
//   - A record is removed, and a start leaves its record, only when no process of it lives. The
//     exception is an allocation whose record was lost. The client must destroy its processes.
//
// # N2, grace
//
//   - A task gets its kill signal only if its allocation must stop. The servers want it, or
//     did not answer for the time of the group, and the delays of the group and of the task are over. Or a task of the allocation has ended before, and
//     the delay of the task is over since then. Or a task has failed, which a record or a report
//     says; with a full disk neither may say it. Or it is a poststop task that has used its time.
//   - At that time the tasks that stop earlier have no process: the leader, the others, sidecars.
//   - A client that has not reached the servers for the time of the group stops the allocation. Its
//     tasks end within the stop time and a minute, unless there was trouble.
//   - SIGKILL follows the signal no sooner than the kill timeout, and no later than a second after it.
//     The bound holds while one client runs.
//   - SIGKILL without a signal is for a task that the client cannot keep: one that a record calls
//     lost after trouble, one without a record, or one whose driver was away for the whole grace.
//
// SIGKILL from the kernel or from a fault is not judged.
//
// # N3, truth
//
//   - When an allocation is reported as terminal, no process of it lives, and nothing is left of a start
//     that has one of its devices.
//   - Nothing is mounted for it then. A volume that is staged is that of the only allocation with a claim
//     for it. The exception is a volume that the report names, when the last process of the allocation has
//     been dead for the hold limit.
//   - Later none is started, unless the disk was full.
//
// # N4, nothing lost
//
//   - A reported exit code is that of a process of the task that has ended. It is unknown only after
//     trouble.
//   - When a node has had no trouble for some time, the servers know the state that its record has,
//     no task that must stop lives longer than it may, and no process is without a record, unless the
//     record was lost and the process cannot die.
//
// # N5, plugins die
//
//   - At most one process of a driver or device plugin lives.
//   - Three starts of one take five seconds or more, unless the first has lived for two minutes.
//   - When a node has had no trouble for some time, each of its drivers and device plugins lives.
//
// # N6, volume order
//
//   - No call is out of order for the double of the storage, which notes that: see package
//     client/volume/scripted.
//   - A volume is claimed, staged and published only if its record on the disk says so. When it is
//     unstaged, the record does not say that it is staged, unless the disk was full. After the loss of
//     a volume's record this is not judged.
//   - A task's process starts only when all volumes of its allocation are published for it. A volume is
//     unpublished only when no process of the allocation lives.
//   - When a node has had no trouble for some time, nothing is mounted without a claim, an allocation
//     that has ended has no claim, and an allocation that should run and has a claim has the volume.
//     A volume waits for a plugin that does not run, and for those who keep it busy.
//
// # N7, plugins last
//
// A plugin of type node serves what is mounted through it, a controller the claims that a client has given
// back and the servers have not taken. A monolith is both.
//
//   - A task that is a storage plugin gets its kill signal, or SIGKILL without one, only if it serves
//     nothing, or if its allocation had to stop the hold limit before. Or its record says that it stops to
//     start again. Or another allocation serves the plugin's id and may run, as far as the present client
//     can know. A task that the client cannot keep, or does not know to have started, is not judged.
//   - When a node has had no trouble for some time, an allocation that must stop and has had no process
//     for the hold limit has ended in its record, although volumes of it are mounted.
//
// # N8, devices
//
// The owner of a device is the start for which it was reserved last. Something is left of a start while
// a process of it lives, or the cgroup of its task exists.
//
//   - A start reserves a device only if nothing is left of another owner, and the newest report of a
//     plugin to this client says that the device is there and healthy. A record on the disk names the
//     start, and no process of it has started.
//   - A task's process starts with exactly the devices that the servers gave to the task. It is their
//     owner, and no process of another start has one of them.
//   - A task does not get its kill signal because a device of it is unhealthy or gone.
//   - When a node has had no trouble for some time, no allocation has waited for five minutes for devices
//     that are healthy and free. It may wait for an allocation that it replaces, and for what is left of
//     a lost record.
//
// # N9, health
//
//   - A client that has run, been connected and had room on its disk for twelve seconds has given
//     a verdict a second after the healthy deadline of each service allocation. The deadline counts
//     from the first sight in this boot, as far as records can say it. An allocation that must stop or
//     has ended needs no verdict.
//   - At a good verdict, each task that is meant to run has run for the minimum healthy time, and
//     each other one has exited with 0.
package onnode
