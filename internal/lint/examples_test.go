package lint_test

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

// The packages that an embedder imports have examples, and go doc shows every example.
func TestProject_examples(t *testing.T) {
	t.Parallel()
	found, err := lint.CheckExamples(os.DirFS(root()), []string{"drainer", "drainer/rules", "drainer/lifecycle", "shims", "witness"})
	must.NoError(t, err)
	report(t, found)
}

func TestCheckExamples(t *testing.T) {
	t.Parallel()
	const code = "package p\n// T is a type.\ntype T struct{}\n// M is a method.\nfunc (T) M() {}\n// F is a function.\nfunc F() {}\nfunc g() {}\n"
	for name, test := range map[string]struct{ examples, want string }{
		"a function":             {"func ExampleF() {}", ""},
		"a function again":       {"func ExampleF_another() {}", ""},
		"a type":                 {"func ExampleT() {}", ""},
		"a method":               {"func ExampleT_M() {}", ""},
		"none":                   {"", "p has no example that go doc attaches to an exported name"},
		"the package":            {"func Example() {}", "p has no example that go doc attaches to an exported name"},
		"a name that is missing": {"func ExampleF() {}\nfunc ExampleU() {}", "ExampleU is attached to nothing in go doc: the package has no such exported name"},
		"a name of the package":  {"func ExampleF() {}\nfunc Example_g() {}", ""},
		"a private name":         {"func ExampleF() {}\nfunc Exampleg() {}", ""}, // go vet refuses it
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := lint.CheckExamples(fstest.MapFS{
				"p/p.go":      {Data: []byte(code)},
				"p/p_test.go": {Data: []byte("package p_test\n" + test.examples + "\n")},
				"q/q.go":      {Data: []byte("package q\n")},
			}, []string{"p"})
			must.NoError(t, err)
			wantOne(t, test.want, found)
		})
	}
}
