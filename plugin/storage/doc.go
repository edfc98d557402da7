// Package storage is the interface to the storage plugins of a node: the calls that stage and
// publish a volume, what a call gets from a claim, and the classes of their errors. Package csi
// below it sends the calls over CSI, package storagetest tests a plugin, and package scripted is a
// test double.
package storage
