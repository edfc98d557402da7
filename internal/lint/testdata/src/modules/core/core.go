// Package core imports its own module, one that it may import, and others.
package core

import (
	_ "errors"

	_ "example.org/other"
	_ "example.org/repository" // want "the module core imports example.org/repository, which is of another module"
	_ "example.org/repository/base/inner"
	_ "example.org/repository/core/inner"
	_ "example.org/repository/corex" // want "imports example.org/repository/corex, which is of another module"
	_ "example.org/repositoryx"
)
