//go:build !unix

package private

import (
	"io/fs"
	"os"
)

// known is whether files have an owner and a mode.
const known = false

// Make makes a folder if it does not exist, and returns its mode.
func Make(path string) (fs.FileMode, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Mode(), nil
}

// CheckAbove does nothing.
func CheckAbove(string) error { return nil }
