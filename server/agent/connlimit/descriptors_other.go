//go:build !unix

package connlimit

// descriptors is zero: such a system has no limit.
func descriptors() uint64 { return 0 }
