package lint

import (
	"fmt"
	"strings"

	"golang.org/x/tools/go/packages"
)

// ReachRule keeps modules out of most packages.
type ReachRule struct {
	// Modules are paths. The rule is for all packages at or below them.
	Modules []string
	// In are the folders whose packages may reach the modules.
	In []string
	// Why is the reason.
	Why string
}

// CheckReach returns the packages of a workspace that reach a module of the rule, directly or
// through others, and that no folder of the rule contains. Root is the path of the repository's
// module. Tests do not count. A module that no package reaches, and a folder that reaches no module,
// are findings: such a rule could not fail.
func CheckReach(dir, root string, rule ReachRule, patterns ...string) ([]Finding, error) {
	mode := packages.NeedName | packages.NeedImports | packages.NeedDeps
	loaded, err := packages.Load(&packages.Config{Mode: mode, Dir: dir}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("loading %v: %w", patterns, err)
	}
	graph := importGraph{}
	packages.Visit(loaded, nil, func(p *packages.Package) { graph[p.PkgPath] = p })
	reached, needed := map[string]bool{}, map[string]bool{}
	var found []Finding
	for _, p := range loaded {
		for _, module := range rule.Modules {
			way := graph.way(p.PkgPath, func(path string) bool { return within(path, module) }, map[string]bool{})
			if way == nil {
				continue
			}
			reached[module] = true
			allowed := false
			for _, folder := range rule.In {
				if within(p.PkgPath, root+"/"+folder) {
					allowed, needed[folder] = true, true
				}
			}
			if !allowed {
				found = append(found, Finding{What: strings.Join(way, " → ") + ": " + rule.Why})
			}
		}
	}
	for _, module := range rule.Modules {
		if !reached[module] {
			found = append(found, Finding{What: fmt.Sprintf("no package reaches %s", module)})
		}
	}
	for _, folder := range rule.In {
		if !needed[folder] {
			found = append(found, Finding{What: fmt.Sprintf("the exception for %s is not needed", folder)})
		}
	}
	return sortFindings(found), nil
}
