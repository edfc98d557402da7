package csi

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// Constants of [hide].
const (
	// minHidden is the shortest value in bytes that is removed. A shorter value would match parts
	// of many words.
	minHidden = 4
	// hidden replaces a value.
	hidden = "[redacted]"
)

// hide removes the values of secrets, and of mount flags such as "password=…", from the text of an
// error. Some plugins repeat these values in their errors, and the text goes to logs and into the
// state.
func hide(err error, secrets map[string]string, options *cluster.MountOptions) error {
	if err == nil {
		return nil
	}
	values := slices.Collect(maps.Values(secrets))
	if options != nil {
		for _, flag := range options.Flags {
			_, value, _ := strings.Cut(flag, "=")
			values = append(values, value)
		}
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) }) // longest first, because a value may be a part of another
	var pairs []string
	for _, value := range values {
		if len(value) >= minHidden {
			pairs = append(pairs, value, hidden)
		}
	}
	text := err.Error()
	without := strings.NewReplacer(pairs...).Replace(text)
	if without == text {
		return err
	}
	if e, is := errors.AsType[*storage.Error](err); is {
		return &storage.Error{Class: e.Class, Err: errors.New(without)}
	}
	return errors.New(without)
}
