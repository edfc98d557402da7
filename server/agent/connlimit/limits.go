package connlimit

import (
	"errors"

	"github.com/hashicorp/go-hclog"
)

// Limits bound the connections of a [Gate]. A gate takes both as they are: see
// [Limits.WithDefaults] for zero values.
type Limits struct {
	// All bounds the connections of all addresses together.
	All int
	// PerAddress bounds the connections of one remote address.
	PerAddress int
}

// The default of [Limits].All is a quarter of the files that the process may have open, within
// these bounds.
const (
	MinDefault = 16
	MaxDefault = 16384
)

// share is the part of the open files that [Limits].All is by default. The rest is for the
// connections between servers, and for the log.
const share = 4

// WithDefaults replaces zero values: All by its default, and PerAddress by half of All.
func (l Limits) WithDefaults() Limits {
	if l.All == 0 {
		l.All = MaxDefault
		if files := descriptors(); files > 0 {
			l.All = int(max(MinDefault, min(MaxDefault, files/share)))
		}
	}
	if l.PerAddress == 0 {
		l.PerAddress = max(1, l.All/2)
	}
	return l
}

// Validate returns why the limits cannot work, or nil.
func (l Limits) Validate() error {
	switch {
	case l.All < 0:
		return errors.New("the limit of all connections must not be negative")
	case l.PerAddress < 0:
		return errors.New("the limit of an address must not be negative")
	}
	return nil
}

// Warn logs when connections up to the limits could take the files that a server needs for its peers
// and its log.
func (l Limits) Warn(logger hclog.Logger) {
	if files := descriptors(); files > 0 && uint64(l.All) > max(MinDefault, files/share) {
		logger.Warn("the limit of connections is more than a quarter of the files that the process may have open: raise the limit of open files (ulimit -n), or lower the limit of connections",
			"bound", l.All, "files", files)
	}
}
