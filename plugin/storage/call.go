package storage

import (
	"errors"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Verb is the kind of a call to a storage plugin of the node.
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

// Call is one call to a storage plugin.
type Call struct {
	Verb   Verb
	Volume cluster.VolumeKey
	Plugin cluster.PluginID
	// ExternalID is the id of the volume in the storage plugin.
	ExternalID string
	// Request is the reference that the call is for. For [Unstage] only Volume and Usage are set.
	Request Request
	// Staged: the usage is staged at [StagePath]. False means that the plugin does not stage
	// volumes.
	Staged bool
	// Claimed is empty for [Unpublish] and [Unstage].
	Claimed Claimed
	// Confidential is set for [Unpublish] and [Unstage]. It must not be sent to the plugin.
	Confidential Confidential
}

// Confidential are the mount options and secrets with which the volume was mounted. An error of a
// call must not contain them. Secrets are not in a record, so only the client process that mounted
// the volume has them.
type Confidential struct {
	Options *cluster.MountOptions
	Secrets map[string]string
}

// Result is the answer to a call.
type Result struct {
	// Err is nil if the call has succeeded and the mount table shows its effect.
	Err error
	// Holders are processes that use the mount, if /proc shows them. They are set after a failed
	// [Unpublish] or [Unstage].
	Holders []Holder
}

// Holder is a process that uses a mount, so that it cannot be unmounted.
type Holder struct {
	PID     int
	Command string
}

// Class states whether a retry after an error can succeed.
type Class uint8

// The classes of errors.
const (
	// Transient: a retry may succeed. An error without a class is transient.
	Transient Class = iota
	// Refused: the same call will never succeed. [Unpublish] and [Unstage] are still retried.
	Refused
	// Unimplemented: this process of the plugin does not implement the call.
	Unimplemented
	// NotStaged: for the plugin the volume is not staged.
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
