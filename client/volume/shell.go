package volume

import (
	"errors"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Shell acts for [Volumes]. Each method returns at once and does not block. It calls reply exactly
// once, from any goroutine but not before it returns. If the owner stops the machine, the replies no
// longer matter. All effects can be repeated.
type Shell interface {
	// SaveVolume writes a record durably. The record belongs to the shell. Only one save or deletion for
	// each volume is in flight.
	SaveVolume(record *Record, reply func(error))
	// DeleteVolume deletes a record. It is no error if there is none.
	DeleteVolume(volume cluster.VolumeKey, reply func(error))

	// Claim asks the servers for a claim. The servers answer when a controller has published the volume to
	// the node, if it needs that. They answer at once if the claim is not free.
	Claim(request Request, reply func(Claimed, error))
	// Release gives a claim back. It is answered without an error when the servers have no claim of the
	// allocation any more, and if a controller must unpublish the volume, after that.
	Release(request Request, reply func(error))
	// Call makes one call of a storage plugin of the node, with a time limit.
	Call(call Call, reply func(Result))
}

// Verb is a call of a storage plugin of the node.
type Verb uint8

// The calls.
const (
	Stage Verb = iota
	Publish
	Unpublish
	Unstage
)

// String returns the name of the call in the protocol.
func (v Verb) String() string {
	return [...]string{"NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"}[v]
}

// Call is one call of a storage plugin.
type Call struct {
	Verb   Verb
	Volume cluster.VolumeKey
	Plugin cluster.PluginID
	// ExternalID is the name by which the plugin knows the volume.
	ExternalID string
	// Request is the reference that the call is for. That of [Unstage] has a usage alone.
	Request Request
	// Staged: a usage of the volume is staged at [StagePath]. Otherwise the plugin does not stage.
	Staged bool
	// Claimed is empty in calls that undo.
	Claimed Claimed
	// Confidential is set in calls that undo. It is not for the plugin.
	Confidential Confidential
}

// Confidential is what an error of a call must not repeat: with what the volume was mounted, as far as this client
// knows it. Secrets are in no record, so they are known to the client that has mounted the volume.
type Confidential struct {
	Options *cluster.MountOptions
	Secrets map[string]string
}

// Result is the answer to a call.
type Result struct {
	// Err is nil if the call has succeeded, and the mount table agrees.
	Err error
	// Holders are processes that keep a mount busy, as far as they show. They are set after a call that
	// undoes and fails.
	Holders []Holder
}

// Holder is a process that keeps a mount busy.
type Holder struct {
	PID     int
	Command string
}

// Class says what an error means for the next call.
type Class uint8

// The classes of errors.
const (
	// Transient: a later call may succeed. An error without a class is transient.
	Transient Class = iota
	// Refused: the same call will never succeed. A call that undoes is repeated nevertheless.
	Refused
	// Unimplemented: this process of the plugin never does it.
	Unimplemented
	// NotStaged: the plugin does not know that the volume is staged.
	NotStaged
)

// Error is an error with a class.
type Error struct {
	Class Class
	Err   error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without its class.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error of a class.
func Errorf(class Class, format string, args ...any) error {
	return &Error{Class: class, Err: fmt.Errorf(format, args...)}
}

// ClassOf returns the class of an error.
func ClassOf(err error) Class {
	if e, is := errors.AsType[*Error](err); is {
		return e.Class
	}
	return Transient
}
