// Package inner is a fixture: it imports what it must not.
package inner

import (
	_ "math/rand"

	_ "github.com/seed-f9cf0b39/nodedrain/internal/lint/testdata/src/imports/middle"
)
