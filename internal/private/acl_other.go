//go:build unix && !linux

package private

// hasList reports that the folder may have an access control list, which this system shows in another way.
func hasList(string) bool { return true }
