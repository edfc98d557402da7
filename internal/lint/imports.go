package lint

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// ImportRule forbids one package to import others. Each ban has its reason.
type ImportRule struct {
	// Package is the path of the package that the rule is for.
	Package string
	// Never are packages that it must not reach, directly or through others. Directly are packages
	// that it must not import itself.
	Never, Directly map[string]string
	// OnlyStandard, if not empty, is the reason why it imports only the standard library, and
	// packages with the same restriction.
	OnlyStandard string
}

// CheckImports returns the imports that break a rule. A rule that names a package that does not
// exist is an error: no import could break it.
func CheckImports(dir string, rules []ImportRule) ([]Finding, error) {
	graph, err := loadImports(dir, rules)
	if err != nil {
		return nil, err
	}
	var found []Finding
	report := func(why string, way ...string) {
		found = append(found, Finding{What: strings.Join(way, " → ") + ": " + why})
	}
	for _, rule := range rules {
		for path, why := range rule.Never {
			if way := graph.way(rule.Package, func(p string) bool { return p == path }, map[string]bool{}); way != nil {
				report(why, way...)
			}
		}
		for path := range graph[rule.Package].Imports {
			if why := rule.Directly[path]; why != "" {
				report(why, rule.Package, path)
			}
			if standard := !strings.Contains(strings.Split(path, "/")[0], "."); rule.OnlyStandard != "" && !standard && !isStandardOnly(rules, path) {
				report(rule.OnlyStandard, rule.Package, path)
			}
		}
	}
	return sortFindings(found), nil
}

// isStandardOnly reports whether a rule restricts the package to the standard library.
func isStandardOnly(rules []ImportRule, path string) bool {
	return slices.ContainsFunc(rules, func(r ImportRule) bool { return r.Package == path && r.OnlyStandard != "" })
}

// importGraph holds packages by path, with their imports.
type importGraph map[string]*packages.Package

// loadImports loads the packages that the rules name.
func loadImports(dir string, rules []ImportRule) (importGraph, error) {
	var paths []string
	for _, r := range rules {
		paths = append(paths, r.Package)
		paths = slices.AppendSeq(paths, maps.Keys(r.Never))
		paths = slices.AppendSeq(paths, maps.Keys(r.Directly))
	}
	mode := packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedFiles
	loaded, err := packages.Load(&packages.Config{Mode: mode, Dir: dir}, paths...)
	if err != nil {
		return nil, fmt.Errorf("loading the packages of import rules: %w", err)
	}
	g := importGraph{}
	packages.Visit(loaded, nil, func(p *packages.Package) { g[p.PkgPath] = p })
	var errs []error
	for _, path := range paths {
		if p := g[path]; p == nil || len(p.Errors) > 0 || len(p.GoFiles) == 0 {
			errs = append(errs, fmt.Errorf("an import rule names %s, which is no package", path))
		}
	}
	return g, errors.Join(errs...)
}

// way returns a chain of imports from a package to one that the target holds for, or nil. The
// packages in visited are not searched again.
func (g importGraph) way(from string, target func(path string) bool, visited map[string]bool) []string {
	if target(from) {
		return []string{from}
	}
	visited[from] = true
	for _, path := range slices.Sorted(maps.Keys(g[from].Imports)) {
		next := g[from].Imports[path].PkgPath
		if !visited[next] {
			if rest := g.way(next, target, visited); rest != nil {
				return append([]string{from}, rest...)
			}
		}
	}
	return nil
}
