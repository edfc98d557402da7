// Package node is the shell of a node's client: it executes the effects of the core in package
// client. It runs tasks through driver plugins, writes records to disk, and communicates with the
// servers.
package node
