package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// Identifiers are distinct types, so that the compiler refuses a node id in place of an
// allocation id.
type (
	// NodeID names a node: a UUID in a cluster that speaks the compatible API,
	// any non-empty string to this library.
	NodeID string
	// AllocID names an allocation.
	AllocID string
	// EvalID names an evaluation.
	EvalID string
	// DrainID names one drain of one node. It is never used again.
	DrainID string
	// DeploymentID names a deployment, or is empty.
	DeploymentID string
	// Namespace is the scope of a [JobID].
	Namespace string
	// JobID names a job within its namespace.
	JobID string
	// Revision is the raft index of the last write to a drain's strategy.
	Revision uint64
)

// MaxIDBytes bounds the length of ids and names that come from operators and clients.
const MaxIDBytes = 256

// CheckID returns why a string from outside cannot be an id or a name, or nil. The error does not
// repeat the string.
func CheckID[ID ~string](id ID) error {
	switch text := string(id); {
	case text == "":
		return errors.New("it is empty")
	case len(text) > MaxIDBytes:
		return fmt.Errorf("it is longer than %d bytes", MaxIDBytes)
	case text != strings.ToValidUTF8(text, ""):
		return errors.New("it is not valid UTF-8")
	case strings.ContainsFunc(text, isControl):
		return errors.New("it contains a control character")
	case text == ".", text == "..":
		return errors.New("it is a step in a path")
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || 0x7f <= r && r < 0xa0 }

// Compare orders node ids as strings.
func (id NodeID) Compare(o NodeID) int { return cmp.Compare(id, o) }

// DefaultNamespace is the namespace of a job that names none.
const DefaultNamespace Namespace = "default"

// JobKey names a job. Equal ids in two namespaces are two jobs.
type JobKey struct {
	Namespace Namespace
	ID        JobID
}

// String returns "namespace/id".
func (k JobKey) String() string { return fmt.Sprintf("%s/%s", k.Namespace, k.ID) }

// Compare orders keys by namespace, then id.
func (k JobKey) Compare(o JobKey) int {
	return cmp.Or(cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.ID, o.ID))
}

// GroupKey names a group: the allocations of one task group of one job.
type GroupKey struct {
	Job  JobKey
	Name string
}

// String returns "namespace/job.group".
func (k GroupKey) String() string { return fmt.Sprintf("%s.%s", k.Job, k.Name) }

// Compare orders keys by namespace, job id, then group name.
func (k GroupKey) Compare(o GroupKey) int {
	return cmp.Or(k.Job.Compare(o.Job), cmp.Compare(k.Name, o.Name))
}
