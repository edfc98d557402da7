// Package disks moves the data of ephemeral disks into the allocations of a node, and opens the data that ended
// allocations keep for the servers. The client's core decides when: see its data_in.go and data_out.go. Package
// datacopy has the stream.
package disks
