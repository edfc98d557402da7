// Package mounts reads the mount table of the machine, and finds the processes that keep a mount busy.
// It never touches what is mounted: a file system whose server is dead would hang the caller.
package mounts
