package cli

import "github.com/seed-f9cf0b39/nodedrain/httpapi"

// Author returns who set a drain, or empty without access control.
func Author(name string) string {
	if name == httpapi.AnonymousName {
		return ""
	}
	return name
}
