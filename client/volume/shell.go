package volume

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// Shell executes the effects of [Volumes]. Each method returns at once and does not block. It calls
// reply exactly once, from any goroutine, and not before it returns. After the owner has stopped
// the step machine, replies are no longer needed. All effects must be repeatable.
type Shell interface {
	// SaveVolume writes a record durably. The shell owns the record. At most one save or deletion
	// of each volume is in flight.
	SaveVolume(record *Record, reply func(error))
	// DeleteVolume deletes a record. A missing record is not an error.
	DeleteVolume(volume cluster.VolumeKey, reply func(error))

	// Claim requests a claim from the servers. If a controller must publish the volume to the node,
	// they answer after that. If no claim is free, they answer at once.
	Claim(request storage.Request, reply func(storage.Claimed, error))
	// Release releases a claim. The answer has no error when the servers no longer have a claim of
	// the allocation. If a controller must unpublish the volume, the answer comes after that.
	Release(request storage.Request, reply func(error))
	// Call makes one call to a storage plugin of the node, with a time limit.
	Call(call storage.Call, reply func(storage.Result))
}
