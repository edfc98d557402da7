package statestore

import "io"

// Persist writes the state for [Restore].
func (r reads) Persist(w io.Writer) error { return errSkeleton }

// Restore returns a new store with the state that [Snapshot.Persist] wrote.
func Restore(r io.Reader) (*Store, error) { return nil, errSkeleton }

// Dump writes every field of every row of every table as text: equal states
// give equal dumps.
func (r reads) Dump(w io.Writer) error { return errSkeleton }
