package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckLogs returns what is wrong with calls of loggers outside of tests: messages
// that begin with a capital or end with a full stop, arguments that are no pairs, and
// keys that are not one word in small letters, or one that has another name here:
// instead holds those. Whoever reads the logs of many servers searches by key, so what
// is the same has to be called the same everywhere.
//
// It goes by form: a call of a level's method on something whose name ends with
// logger, with a string literal for the message.
func CheckLogs(t *Tree, instead map[string]string) []Finding {
	c := logCheck{tree: t, instead: instead}
	for _, f := range t.files {
		if !f.isTest() {
			ast.Inspect(f.syntax, c.inspect)
		}
	}
	return sortFindings(c.found)
}

// logCheck is a check of calls under way.
type logCheck struct {
	tree    *Tree
	instead map[string]string
	found   []Finding
}

// keyPattern is what a key looks like.
var keyPattern = regexp.MustCompile(`^[a-z]+$`)

func (c *logCheck) inspect(n ast.Node) bool {
	if call, ok := n.(*ast.CallExpr); ok && isLogCall(call) {
		c.checkMessage(call.Args[0])
		c.checkPairs(call)
	}
	return true
}

func (c *logCheck) report(at ast.Node, format string, args ...any) {
	c.found = append(c.found, Finding{Pos: c.tree.fset.Position(at.Pos()), What: fmt.Sprintf(format, args...)})
}

func isLogCall(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 || !slices.Contains([]string{"Trace", "Debug", "Info", "Warn", "Error"}, method.Sel.Name) {
		return false
	}
	if _, literal := stringOf(call.Args[0]); !literal {
		return false
	}
	var name string
	switch on := method.X.(type) {
	case *ast.Ident:
		name = on.Name
	case *ast.SelectorExpr:
		name = on.Sel.Name
	}
	return strings.HasSuffix(strings.ToLower(name), "logger")
}

func (c *logCheck) checkMessage(e ast.Expr) {
	message, _ := stringOf(e)
	first, _ := utf8.DecodeRuneInString(message)
	second, _ := utf8.DecodeRuneInString(message[min(len(message), utf8.RuneLen(first)):])
	switch {
	case message == "":
		c.report(e, "a log line says nothing")
	case unicode.IsUpper(first) && !unicode.IsUpper(second): // HTTP may stay
		c.report(e, "a log line begins with a capital")
	case strings.HasSuffix(message, "."):
		c.report(e, "a log line ends with a full stop")
	}
}

func (c *logCheck) checkPairs(call *ast.CallExpr) {
	pairs := call.Args[1:]
	if call.Ellipsis != token.NoPos {
		return
	}
	if len(pairs)%2 != 0 {
		c.report(call, "a log line has a key without a value")
	}
	for i := 0; i < len(pairs); i += 2 {
		key, literal := stringOf(pairs[i])
		switch name, known := c.instead[key]; {
		case !literal:
			c.report(pairs[i], "a key of a log line is no string literal")
		case known:
			c.report(pairs[i], "the key %s is called %s", key, name)
		case !keyPattern.MatchString(key):
			c.report(pairs[i], "the key %q is not one word in small letters", key)
		}
	}
}

// stringOf is the value of a string literal.
func stringOf(e ast.Expr) (value string, ok bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(lit.Value)
	return value, err == nil
}
