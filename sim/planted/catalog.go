package planted

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// ending is that of the files of bugs.
const ending = ".bug"

// Load reads every bug of a folder, in the order of their names. The error holds
// everything that is wrong with any of them.
func Load(folder fs.FS) ([]*Bug, error) {
	names, err := fs.Glob(folder, "*"+ending)
	if err != nil {
		return nil, fmt.Errorf("looking for planted bugs: %w", err)
	}
	var bugs []*Bug
	var errs []error
	for _, name := range names { // Glob sorts them
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			errs = append(errs, fmt.Errorf("reading a planted bug: %w", err))
			continue
		}
		b, err := Parse(strings.TrimSuffix(path.Base(name), ending), string(text))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		bugs = append(bugs, b)
	}
	return bugs, errors.Join(errs...)
}
