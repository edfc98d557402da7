package config

import (
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// reader reads values, and collects what is wrong with them.
type reader struct{ found hcl.Diagnostics }

// refuse adds a mistake in the value of a key.
func (r *reader) refuse(at hcl.Expression, key, why string) { r.add(at.Range(), key, why) }

func (r *reader) add(at hcl.Range, key, why string) {
	r.found = append(r.found, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: fmt.Sprintf("Invalid %q", key), Detail: why, Subject: &at})
}

// decode reports whether the file has the key. If so, it decodes the key's value into to.
func decode[T any](r *reader, at hcl.Expression, to *T) bool {
	if at == nil {
		return false
	}
	if value, found := at.Value(nil); !found.HasErrors() && value.IsNull() {
		return false
	}
	found := gohcl.DecodeExpression(at, nil, to)
	r.found = append(r.found, found...)
	return !found.HasErrors()
}

func (r *reader) text(at hcl.Expression, otherwise string) string {
	var text string
	if decode(r, at, &text) {
		return text
	}
	return otherwise
}

// name reads a name as the servers accept it.
func (r *reader) name(key string, at hcl.Expression, otherwise string) string {
	name := r.text(at, otherwise)
	if name == "" || name == otherwise {
		return name
	}
	if err := cluster.CheckID(name); err != nil {
		r.refuse(at, key, err.Error())
	}
	return name
}

// path reads an absolute path, or nothing.
func (r *reader) path(key string, at hcl.Expression) string {
	path := r.text(at, "")
	if path != "" && !filepath.IsAbs(path) {
		r.refuse(at, key, fmt.Sprintf("%q must be an absolute path", path))
	}
	return path
}

// count reads a number that is least or above.
func (r *reader) count(key string, at hcl.Expression, least, otherwise int) int {
	var n int
	if !decode(r, at, &n) {
		return otherwise
	}
	if n < least || n > math.MaxInt32 {
		r.refuse(at, key, fmt.Sprintf("%d must be at least %d and at most %d", n, least, math.MaxInt32))
	}
	return n
}

// duration reads a duration above zero.
func (r *reader) duration(key string, at hcl.Expression, otherwise time.Duration) time.Duration {
	var text string
	if !decode(r, at, &text) {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		r.refuse(at, key, fmt.Sprintf("%q must be a duration above zero, such as \"10m\"", text))
	}
	return d
}
