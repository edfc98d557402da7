package lint

import (
	"go/ast"
	"maps"
	"path"
	"strconv"
	"strings"
)

// CheckMethods returns the types and interfaces with more methods than most. Methods that are
// promoted from embedded types of the module count too, except those of an interface in a struct.
// Types of tests count with their own methods, those of generated files do not count.
func CheckMethods(f *Files, module string, most int) []Finding {
	types := typesIn(f, module)
	var found []Finding
	for name, t := range types {
		if n := len(types.methods(name)); n > most && t.declared != nil {
			found = append(found, f.at(t.declared, "%s has %d methods, and may have %d", name, n, most))
		}
	}
	return sortFindings(found)
}

// typeDecl is a type with its own methods.
type typeDecl struct {
	declared    *ast.TypeSpec // nil if its file is generated
	isInterface bool
	methods     map[string]bool
	// embedded are the names of its embedded types.
	embedded []string
}

// typeTable holds types by "folder.Type".
type typeTable map[string]*typeDecl

// methods returns the names of a type's methods, promoted ones included.
func (t typeTable) methods(name string) map[string]bool {
	all := make(map[string]bool)
	visited := make(map[string]bool)
	var add func(name string)
	add = func(name string) {
		decl := t[name]
		if decl == nil || visited[name] {
			return
		}
		visited[name] = true
		maps.Copy(all, decl.methods)
		for _, e := range decl.embedded {
			if inner := t[e]; inner != nil && (decl.isInterface || !inner.isInterface) {
				add(e)
			}
		}
	}
	add(name)
	return all
}

func (t typeTable) of(name string) *typeDecl {
	if t[name] == nil {
		t[name] = &typeDecl{methods: make(map[string]bool)}
	}
	return t[name]
}

// typesIn returns the types of all files that no program has generated.
func typesIn(f *Files, module string) typeTable {
	types := make(typeTable)
	for _, file := range f.written() {
		// A folder holds package p and its external tests, package p_test.
		folder := path.Dir(file.name)
		if strings.HasSuffix(file.syntax.Name.Name, "_test") {
			folder += "_test"
		}
		imported := importedFolders(file.syntax, module)
		ast.Inspect(file.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					types.of(folder + "." + baseOf(n.Recv.List[0].Type)).methods[n.Name.Name] = true
				}
			case *ast.TypeSpec:
				t := types.of(folder + "." + n.Name.Name)
				t.declared = n
				t.add(n.Type, folder, imported)
				if strings.HasSuffix(file.name, "_test.go") {
					t.embedded = nil // fixtures of tests extend each other
				}
			}
			return true
		})
	}
	return types
}

// add adds the methods of an interface, and the embedded types of an interface or a struct.
func (t *typeDecl) add(declared ast.Expr, folder string, imported map[string]string) {
	var fields *ast.FieldList
	switch d := declared.(type) {
	case *ast.InterfaceType:
		t.isInterface, fields = true, d.Methods
	case *ast.StructType:
		fields = d.Fields
	default:
		return
	}
	for _, field := range fields.List {
		switch qualifier, name := qualifiedBase(field.Type); {
		case len(field.Names) > 0 && t.isInterface:
			t.methods[field.Names[0].Name] = true
		case len(field.Names) > 0 || name == "":
		case qualifier == "":
			t.embedded = append(t.embedded, folder+"."+name)
		case imported[qualifier] != "":
			t.embedded = append(t.embedded, imported[qualifier]+"."+name)
		}
	}
}

// importedFolders returns the folders of the module that a file imports, by the name of the import.
func importedFolders(file *ast.File, module string) map[string]string {
	folders := make(map[string]string)
	for _, spec := range file.Imports {
		full, err := strconv.Unquote(spec.Path.Value)
		folder, ours := strings.CutPrefix(full, module+"/")
		if err != nil || !ours {
			continue
		}
		name := path.Base(full)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		folders[name] = folder
	}
	return folders
}

// baseOf returns the name of a type without pointer, parameters and package.
func baseOf(t ast.Expr) string {
	_, name := qualifiedBase(t)
	return name
}

// qualifiedBase returns the name of a type, and the name of its package if it is of another one.
func qualifiedBase(t ast.Expr) (qualifier, name string) {
	for {
		switch inner := ast.Unparen(t).(type) {
		case *ast.StarExpr:
			t = inner.X
		case *ast.IndexExpr:
			t = inner.X
		case *ast.IndexListExpr:
			t = inner.X
		case *ast.Ident:
			return "", inner.Name
		case *ast.SelectorExpr:
			if pkg, is := inner.X.(*ast.Ident); is {
				return pkg.Name, inner.Sel.Name
			}
			return "", ""
		default:
			return "", ""
		}
	}
}
