package storage

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Bounds of what [hide] looks for.
const (
	// minHidden is the least length of a value in bytes. A shorter one is a part of many words.
	minHidden = 4
	// hidden stands for a value.
	hidden = "[redacted]"
)

// hide takes the values of secrets, and those of mount flags such as "password=…", out of the text of an
// error. A plugin should not repeat them, and some do: the text goes to logs and into the state.
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
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) }) // a value may be a part of another
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
	if e, is := errors.AsType[*volume.Error](err); is {
		return &volume.Error{Class: e.Class, Err: errors.New(without)}
	}
	return errors.New(without)
}
