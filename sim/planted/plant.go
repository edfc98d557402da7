package planted

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Variable is the environment variable that names the bug which a planted program has. Without
// it the program has none.
const Variable = "NODEDRAIN_PLANTED_BUG"

// variant is the body of a function with a bug.
type variant struct {
	bug  string
	body string
}

// Apply returns the product's files with all the bugs, by name. A changed function begins with
// each of its variants, under the condition that [Variable] names the bug. The error of an edit
// that does not match states how to repair the bug.
func Apply(repository fs.FS, bugs []*Bug) (map[string]string, error) {
	packages, variants := map[string]*sources{}, map[*ast.FuncDecl][]variant{}
	var errs []error
	for _, b := range bugs {
		for _, e := range b.Edits {
			if err := addVariant(repository, packages, variants, b, e); err != nil {
				errs = append(errs, fmt.Errorf("%s%s:%d: %s %s: %w", b.Name, extension, e.Line, e.Folder, e.Func, err))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	changed := map[string]string{}
	for folder, s := range packages {
		changed[path.Join(folder, "planted_bug.go")] = fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar plantedBug = os.Getenv(%q)\n", s.files[0].Name, Variable)
		for name, text := range s.with(variants) {
			changed[name] = text
		}
	}
	return changed, nil
}

// addVariant makes one edit of a bug in the variant of its function.
func addVariant(repository fs.FS, packages map[string]*sources, variants map[*ast.FuncDecl][]variant, b *Bug, e Edit) (err error) {
	s := packages[e.Folder]
	if s == nil {
		if s, err = parseFolder(repository, e.Folder); err != nil {
			return err
		}
		packages[e.Folder] = s
	}
	f, err := s.function(e)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(variants[f], func(v variant) bool { return v.bug == b.Name })
	if at < 0 {
		at = len(variants[f])
		variants[f] = append(variants[f], variant{b.Name, s.body(f)})
	}
	body, err := apply(e, variants[f][at].body)
	if err != nil {
		return err
	}
	variants[f][at].body = body
	return nil
}

// with returns the changed files with the variants.
func (s *sources) with(variants map[*ast.FuncDecl][]variant) map[string]string {
	changed := map[string]string{}
	for _, file := range s.files {
		var text strings.Builder
		name, done := s.set.Position(file.Pos()).Filename, 0
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || len(variants[f]) == 0 {
				continue
			}
			start := s.set.Position(f.Body.Lbrace)
			text.WriteString(s.texts[name][done : start.Offset+1])
			done = start.Offset + 1
			for _, v := range variants[f] {
				end := "}"
				if f.Type.Results == nil {
					end = "\nreturn }"
				}
				// The directives have the compiler name the bug in errors.
				fmt.Fprintf(&text, "\n//line %s%s:1\nif plantedBug == %q %s%s\n//line %s:%d\n",
					v.bug, extension, v.bug, v.body[:len(v.body)-1], end, path.Base(name), start.Line)
			}
		}
		if done > 0 {
			changed[name] = text.String() + s.texts[name][done:]
		}
	}
	return changed
}

// Plant writes the product's files with all the bugs below dir, and an overlay that has the go
// command read them. It returns the overlay's file, for the flag -overlay. root is the top of
// the repository, absolute.
func Plant(root, dir string, bugs []*Bug) (overlay string, err error) {
	changed, err := Apply(os.DirFS(root), bugs)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range changed {
		copied := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("planting bugs: %w", err)
		}
		replace[filepath.Join(root, filepath.FromSlash(file))] = copied
	}
	list, err := json.Marshal(struct{ Replace map[string]string }{replace})
	if err != nil {
		return "", fmt.Errorf("planting bugs: %w", err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return "", fmt.Errorf("planting bugs: %w", err)
	}
	return overlay, nil
}
