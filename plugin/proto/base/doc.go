// Package base is the service of every plugin: its identity, its schema, its config. Its code is
// generated from base.proto.
package base
