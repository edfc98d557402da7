// Package outer is a fixture: it imports the standard library.
package outer

import _ "math/rand"
