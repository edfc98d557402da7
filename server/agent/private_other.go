//go:build !unix

package agent

import "io/fs"

// checkPrivate does nothing: other systems have no modes of files.
func checkPrivate(fs.FileInfo) error { return nil }
