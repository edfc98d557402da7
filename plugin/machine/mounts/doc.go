// Package mounts reads the mount table of the machine, and finds the processes that keep a mount
// busy. It never reads a mounted file system: one whose server is dead would block the caller.
// Package client/node uses it for volumes.
package mounts
