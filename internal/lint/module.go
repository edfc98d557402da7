package lint

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/packages"
)

// Module is a set of packages without their tests.
type Module struct {
	// Dir is the folder from which the packages were loaded. Findings name files
	// relative to it.
	Dir string
	// Packages are in the order of their paths.
	Packages []*packages.Package
	Fset     *token.FileSet

	byPath map[string]*packages.Package
}

// Finding is a violation of a rule.
type Finding struct {
	Pos token.Position
	// What describes the violation and its reason.
	What string
}

// String returns "file:line:column: what".
func (f Finding) String() string { return fmt.Sprintf("%s: %s", f.Pos, f.What) }

const loadMode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule

// Load reads and type-checks the packages of the patterns, as go list in dir. Packages that do not
// compile are an error.
func Load(dir string, patterns ...string) (*Module, error) {
	fset := token.NewFileSet()
	loaded, err := packages.Load(&packages.Config{Mode: loadMode, Dir: dir, Fset: fset}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("loading %v: %w", patterns, err)
	}
	m := &Module{Dir: dir, Packages: loaded, Fset: fset, byPath: make(map[string]*packages.Package, len(loaded))}
	slices.SortFunc(m.Packages, func(a, b *packages.Package) int { return cmp.Compare(a.PkgPath, b.PkgPath) })
	var errs []error
	for _, p := range m.Packages {
		m.byPath[p.PkgPath] = p
		for _, e := range p.Errors {
			errs = append(errs, fmt.Errorf("loading %s: %w", p.PkgPath, e))
		}
	}
	return m, errors.Join(errs...)
}

func (m *Module) at(n ast.Node, format string, args ...any) Finding {
	return Finding{Pos: m.position(n.Pos()), What: fmt.Sprintf(format, args...)}
}

func (m *Module) position(pos token.Pos) token.Position {
	p := m.Fset.Position(pos)
	p.Filename = relative(m.Dir, p.Filename)
	return p
}

// relative returns the path of the file relative to dir, with slashes.
func relative(dir, file string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if rel, err := filepath.Rel(dir, file); err == nil {
		file = rel
	}
	return filepath.ToSlash(file)
}

func sortFindings(found []Finding) []Finding {
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Pos.Filename, b.Pos.Filename), cmp.Compare(a.Pos.Offset, b.Pos.Offset), cmp.Compare(a.What, b.What))
	})
	return slices.Compact(found)
}
