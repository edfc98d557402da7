// Package middle is a fixture: it stands between two others.
package middle

import _ "github.com/seed-f9cf0b39/nodedrain/internal/lint/testdata/src/imports/outer"
