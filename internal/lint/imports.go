package lint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// ImportRule keeps one package from importing others.
type ImportRule struct {
	// Package is the path of the package that must not import.
	Package string
	// Never are packages that must not be reached at all, Directly those that it
	// must not import itself, each with the reason.
	Never, Directly map[string]string
	// OnlyStandard, if not empty, is why it imports the standard library alone.
	OnlyStandard string
}

// CheckImports returns the imports that break a rule. A rule that speaks of a
// package that does not exist could not be broken, and is an error.
func CheckImports(dir string, rules []ImportRule) ([]Finding, error) {
	graph, err := loadImports(dir, named(rules))
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, rule := range rules {
		for path, why := range rule.Never {
			if way := graph.way(rule.Package, path); way != nil {
				found = append(found, Finding{What: fmt.Sprintf("%s: %s", strings.Join(way, " → "), why)})
			}
		}
		for path, why := range rule.Directly {
			if graph[rule.Package].Imports[path] != nil {
				found = append(found, Finding{What: fmt.Sprintf("%s → %s: %s", rule.Package, path, why)})
			}
		}
		if rule.OnlyStandard != "" {
			for path := range graph[rule.Package].Imports {
				if strings.Contains(strings.Split(path, "/")[0], ".") {
					found = append(found, Finding{What: fmt.Sprintf("%s → %s: %s", rule.Package, path, rule.OnlyStandard)})
				}
			}
		}
	}
	return sortFindings(found), nil
}

// named returns all packages that the rules name, in order.
func named(rules []ImportRule) []string {
	var paths []string
	for _, r := range rules {
		paths = append(paths, r.Package)
		for path := range r.Never {
			paths = append(paths, path)
		}
		for path := range r.Directly {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// importGraph holds packages by path, with all that they import.
type importGraph map[string]*packages.Package

func loadImports(dir string, paths []string) (importGraph, error) {
	mode := packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedFiles
	loaded, err := packages.Load(&packages.Config{Mode: mode, Dir: dir}, paths...)
	if err != nil {
		return nil, fmt.Errorf("loading the packages of import rules: %w", err)
	}
	g := importGraph{}
	var errs []error
	packages.Visit(loaded, func(p *packages.Package) bool {
		g[p.PkgPath] = p
		return true
	}, nil)
	for _, path := range paths {
		if p := g[path]; p == nil || len(p.Errors) > 0 || len(p.GoFiles) == 0 {
			errs = append(errs, fmt.Errorf("an import rule speaks of %s, which is no package", path))
		}
	}
	return g, errors.Join(errs...)
}

// way returns a shortest chain of imports between two packages, or nil.
func (g importGraph) way(from, to string) []string {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		path := queue[0]
		if path == to {
			var way []string
			for ; path != ""; path = before[path] {
				way = append(way, path)
			}
			slices.Reverse(way)
			return way
		}
		var next []string
		for _, p := range g[path].Imports {
			next = append(next, p.PkgPath)
		}
		slices.Sort(next)
		for _, p := range next {
			if _, seen := before[p]; !seen {
				before[p] = path
				queue = append(queue, p)
			}
		}
	}
	return nil
}
