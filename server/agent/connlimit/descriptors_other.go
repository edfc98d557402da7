//go:build !unix

package connlimit

// descriptors is zero: such a system has no limit to ask for.
func descriptors() uint64 { return 0 }
