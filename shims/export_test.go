package shims

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// FutureStatus is a message that a server of version 1 does not understand.
type FutureStatus struct{ NodeUpdateStatus }

func (*FutureStatus) needs() cluster.Version { return 2 }
