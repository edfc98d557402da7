package node

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/internal/bootclock"
)

// now reads the node's clocks.
func now() client.Time { return client.Time{Boot: bootclock.Now(), Wall: time.Now().Round(0)} }
