// Package node is the shell of a node's client: it acts for the core in package client. It runs
// tasks through driver plugins, keeps records on disk, and speaks with the servers.
package node
