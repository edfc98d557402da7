package lint

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// CheckExamples returns the examples that go doc attaches to nothing, and the folders of needed that
// have no example of an exported name. An example is attached if its name is that of the package, or
// of an exported function, type or method.
func CheckExamples(dir fs.FS, needed []string) ([]Finding, error) {
	files, err := ReadFiles(dir)
	if err != nil {
		return nil, err
	}
	folders := map[string][]*ast.File{}
	for _, file := range files.parsed {
		text, err := fs.ReadFile(dir, file.name)
		if err != nil {
			return nil, fmt.Errorf("reading the examples: %w", err)
		}
		// go/doc changes the syntax, and reads the objects that ReadFiles leaves out.
		syntax, err := parser.ParseFile(files.fset, file.name, text, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("reading the examples: %w", err)
		}
		folder := path.Dir(file.name)
		folders[folder] = append(folders[folder], syntax)
	}
	var found []Finding
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		examples := examplesIn(files, folders[folder])
		if len(examples) == 0 && !slices.Contains(needed, folder) {
			continue
		}
		p, err := doc.NewFromFiles(files.fset, folders[folder], folder)
		if err != nil {
			return nil, fmt.Errorf("reading the documents of %s: %w", folder, err)
		}
		ofNames := attachedToNames(p)
		for _, e := range examples {
			if !slices.Contains(ofNames, e.Name) && !slices.ContainsFunc(p.Examples, func(o *doc.Example) bool { return o.Name == e.Name }) {
				found = append(found, files.at(e.Code, "Example%s is attached to nothing in go doc: the package has no such exported name", e.Name))
			}
		}
		if len(ofNames) == 0 && slices.Contains(needed, folder) {
			found = append(found, files.at(folders[folder][0], "%s has no example that go doc attaches to an exported name", folder))
		}
	}
	return sortFindings(found), nil
}

// examplesIn returns the examples in the test files of a folder.
func examplesIn(f *Files, folder []*ast.File) []*doc.Example {
	tests := slices.DeleteFunc(slices.Clone(folder), func(file *ast.File) bool {
		return !strings.HasSuffix(f.fset.Position(file.Pos()).Filename, "_test.go")
	})
	return doc.Examples(tests...)
}

// attachedToNames returns the names of the examples that go doc attaches to a function, type or
// method.
func attachedToNames(p *doc.Package) (names []string) {
	add := func(examples []*doc.Example) {
		for _, e := range examples {
			names = append(names, e.Name)
		}
	}
	functions := func(all []*doc.Func) {
		for _, f := range all {
			add(f.Examples)
		}
	}
	functions(p.Funcs)
	for _, t := range p.Types {
		add(t.Examples)
		functions(t.Funcs)
		functions(t.Methods)
	}
	return names
}
