package datacopy

import (
	"cmp"
	"strings"
)

// Position is a place in the order of a stream. The zero value is the start.
type Position struct {
	// Path is the last entry that has arrived. All entries before it have arrived too.
	Path string
	// Offset counts the bytes of a file from its start that have arrived, holes included.
	Offset int64
}

// Progress is what a receiver has received.
type Progress struct {
	// At is where the next stream continues.
	At Position
	// Bytes counts the contents of files, without holes. Entries counts files, folders and links. Skipped
	// counts the special files that the sender has left out; it is known at the end.
	Bytes, Entries, Skipped int64
	// Mounts names the folders that the sender has left out because another file system is mounted there, or is
	// empty. It is known at the end.
	Mounts string
}

// comparePaths compares two paths in the order of a stream: a folder is before its content, and names
// are in the order of their bytes.
func comparePaths(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		switch {
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		}
		return cmp.Compare(a[i], b[i])
	}
	return cmp.Compare(len(a), len(b))
}

// below reports whether a path is in a folder, at any depth.
func below(path, folder string) bool {
	return len(path) > len(folder) && path[len(folder)] == '/' && strings.HasPrefix(path, folder)
}
