// Package dev runs a cluster of real processes on the loopback interface, for people who try
// nodedrain: one server in this process and in memory, clients of nodes that run tasks with
// raw_exec, and example jobs. [Start] starts it. "nodedrain dev" is its command.
//
// # Nothing stays
//
// A cluster owns one directory. [Cluster.Stop] stops the tasks, ends drivers and shims, and deletes
// the directory. If the process is killed, its tasks keep running. The next [Start] with the same
// directory ends them before it starts a new cluster.
//
// # Limits of a machine
//
// Tasks of the example jobs run as an unprivileged user if the process runs as root. Where the user
// can make no control groups, only the driver can kill tasks. [Cluster.Limits] says what holds.
package dev
