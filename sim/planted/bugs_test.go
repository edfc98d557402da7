package planted_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoenig/test/must"
	"golang.org/x/tools/go/packages"

	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
)

const (
	root   = "../.."
	module = "github.com/seed-f9cf0b39/nodedrain"
)

func allBugs(t *testing.T) []*planted.Bug {
	t.Helper()
	bugs, err := planted.Load(os.DirFS("bugs"))
	must.NoError(t, err)
	return bugs
}

// A bug that no longer applies tests nothing: plant it anew, or drop it.
func TestBugs_Apply(t *testing.T) {
	t.Parallel()
	for _, b := range allBugs(t) {
		if _, err := b.Apply(planted.SourceIn(root)); err != nil {
			t.Error(err)
		}
	}
}

// Each guarantee that can be broken by one mistake is broken by several.
func TestBugs_BreakEveryGuarantee(t *testing.T) {
	t.Parallel()
	bugs := allBugs(t)
	must.GreaterEq(t, 30, len(bugs))
	breaking := map[planted.Guarantee]int{}
	for _, b := range bugs {
		breaking[b.Breaks[0]]++
	}
	for _, g := range planted.Guarantees()[:8] {
		must.GreaterEq(t, 3, breaking[g], must.Sprintf("bugs that break %s first", g))
	}
	for _, g := range planted.Guarantees()[8:] {
		must.Positive(t, breaking[g], must.Sprintf("bugs that break %s first", g))
	}
}

// Two bugs that are one would count twice.
func TestBugs_Differ(t *testing.T) {
	t.Parallel()
	titles, changes := map[string]string{}, map[string]string{}
	for _, b := range allBugs(t) {
		changed, err := b.Apply(planted.SourceIn(root))
		must.NoError(t, err)
		all := ""
		for _, file := range slices.Sorted(maps.Keys(changed)) {
			all += file + changed[file]
		}
		must.MapNotContainsKey(t, titles, b.Title, must.Sprintf("%s has the title of %s", b.Name, titles[b.Title]))
		must.MapNotContainsKey(t, changes, all, must.Sprintf("%s does what %s does", b.Name, changes[all]))
		titles[b.Title], changes[all] = b.Name, b.Name
	}
}

// Every changed package still passes the type checker. That all of nodedrain can
// be built with each of them takes minutes, and is seen when they are measured.
func TestBugs_TypeCheck(t *testing.T) {
	t.Parallel()
	bugs := allBugs(t)
	loaded := loadChanged(t, bugs)
	for _, b := range bugs {
		changed, err := b.Apply(planted.SourceIn(root))
		must.NoError(t, err)
		byFolder := map[string]map[string]string{}
		for file, text := range changed {
			folder := path.Dir(file)
			if byFolder[folder] == nil {
				byFolder[folder] = map[string]string{}
			}
			byFolder[folder][path.Base(file)] = text
		}
		for folder, texts := range byFolder {
			if err := check(loaded[module+"/"+folder], texts); err != nil {
				t.Errorf("%s: %v", b.Name, err)
			}
		}
	}
}

// loadChanged loads the packages that bugs change, by path.
func loadChanged(t *testing.T, bugs []*planted.Bug) map[string]*packages.Package {
	folders := map[string]bool{}
	for _, b := range bugs {
		for _, h := range b.Hunks {
			folders["./"+path.Dir(h.File)] = true
		}
	}
	list, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: root}, slices.Sorted(maps.Keys(folders))...)
	must.NoError(t, err)
	loaded := map[string]*packages.Package{}
	for _, p := range list {
		must.SliceEmpty(t, p.Errors)
		loaded[p.PkgPath] = p
	}
	return loaded
}

// check type-checks a package with other texts for some of its files.
func check(p *packages.Package, texts map[string]string) error {
	var files []*ast.File
	for i, name := range p.CompiledGoFiles {
		file := p.Syntax[i]
		if text, changed := texts[filepath.Base(name)]; changed {
			var err error
			if file, err = parser.ParseFile(p.Fset, name, text, parser.SkipObjectResolution); err != nil {
				return err
			}
		}
		files = append(files, file)
	}
	config := types.Config{Importer: importer(p.Imports), Sizes: p.TypesSizes}
	_, err := config.Check(p.PkgPath, p.Fset, files, nil)
	return err
}

// importer imports what was loaded with a package.
type importer map[string]*packages.Package

func (i importer) Import(name string) (*types.Package, error) {
	if p := i[name]; p != nil {
		return p.Types, nil
	}
	return nil, fmt.Errorf("%s is not loaded", name)
}
