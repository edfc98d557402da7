// Package raftwrite holds the types of a raft write that begins in one step and is
// answered in a later one. The drainer, the reference scheduler and their appliers share
// them.
package raftwrite
