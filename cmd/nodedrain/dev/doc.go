// Package dev runs a small cluster on the loopback interface, for people who try nodedrain: one
// server in this process and in memory, clients of nodes, and example jobs. The driver of the tasks is
// raw_exec, or mock, whose tasks have no processes. [Start] starts a cluster. [Command] is "nodedrain
// dev".
//
// # Nothing stays
//
// A cluster owns one directory. [Cluster.Stop] stops the tasks, ends drivers and shims, and deletes
// the directory. If the process is killed, its tasks continue to run. The next [Start] with the same
// directory ends them before it starts a new cluster.
//
// # Limits of a machine
//
// Tasks of the example jobs run as an unprivileged user if the process runs as root. Where the user
// cannot create control groups, only the driver can kill tasks. [Cluster.WriteGuide] writes the limits.
package dev
