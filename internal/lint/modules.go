package lint

import (
	"fmt"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// ModuleRule keeps a module below the repository's root from importing packages of the
// repository's other modules. In a workspace the go command lets it.
type ModuleRule struct {
	// Dir is the module's folder, relative to the repository's.
	Dir string
	// Uses are the folders of the other modules that it may import.
	Uses []string
}

// CheckModules returns the imports that break a rule, in tests too. Root is the path of the
// repository's module. A rule for a folder without Go files is an error.
func CheckModules(t *Tree, root string, rules []ModuleRule) ([]Finding, error) {
	var found []Finding
	for _, rule := range rules {
		files := 0
		for _, f := range t.files {
			if within(f.name, rule.Dir) {
				files++
				found = append(found, rule.check(t.fset, f, root)...)
			}
		}
		if files == 0 {
			return nil, fmt.Errorf("a module rule speaks of %s, which holds no Go file", rule.Dir)
		}
	}
	return sortFindings(found), nil
}

func (r ModuleRule) check(fset *token.FileSet, f file, root string) []Finding {
	var found []Finding
	for _, spec := range f.syntax.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !within(path, root) {
			continue
		}
		dir := strings.TrimPrefix(strings.TrimPrefix(path, root), "/")
		if !slices.ContainsFunc(append([]string{r.Dir}, r.Uses...), func(may string) bool { return within(dir, may) }) {
			found = append(found, f.at(fset.Position(spec.Pos()).Line, fmt.Sprintf("the module %s imports %s, which is of another module", r.Dir, path)))
		}
	}
	return found
}

// within reports whether a path is that of a folder, or below it.
func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }
