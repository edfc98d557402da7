package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// unclear finds words for which plain English has a noun or a verb: who it is, what is done. A
// phrase may continue in the next line.
var unclear = regexp.MustCompile(`(?i)\b(?:whom?ever|(?:no|some|any)body|a[n]ew|(?:is|are|was|were)\s+to\s+be|(?:told|heard)\s+of)\b` +
	// At the start of a clause only: "in whatever order" is plain.
	`|(?-i:\bWhatever\b)|(?:^|[.,;:]\s+|\()whatever\b`)

// maxLine is the length of a line of a document, in characters.
const maxLine = 100

// CheckWords returns unclear words in the comments and strings of Go files, without generated ones.
func CheckWords(f *Files) []Finding {
	var found []Finding
	for _, file := range f.written() {
		for _, group := range file.syntax.Comments {
			found = append(found, unclearIn(f.fset.Position(group.Pos()), commentText(group))...)
		}
		ast.Inspect(file.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
				found = append(found, unclearIn(f.fset.Position(s.Pos()), strings.Trim(s.Value, "\"`"))...)
			}
			return true
		})
	}
	return sortFindings(found)
}

// commentText returns the text without its markers. It has the lines of the source.
func commentText(group *ast.CommentGroup) string {
	var lines []string
	for _, c := range group.List {
		lines = append(lines, strings.TrimSpace(strings.TrimLeft(c.Text, "/*")))
	}
	return strings.Join(lines, "\n")
}

// unclearIn returns the unclear words of a text that begins at a position.
func unclearIn(start token.Position, text string) []Finding {
	var found []Finding
	for _, match := range unclear.FindAllStringIndex(text, -1) {
		words := strings.TrimLeft(text[match[0]:match[1]], ".,;:( \t\n")
		first := match[1] - len(words)
		pos := token.Position{Filename: start.Filename, Line: start.Line + strings.Count(text[:first], "\n"), Offset: start.Offset + first}
		found = append(found, Finding{Pos: pos, What: fmt.Sprintf("%q is not plain: name who or what it is", strings.Join(strings.Fields(words), " "))})
	}
	return found
}

// CheckDocuments returns unclear words in the documents (*.md), scenarios (*.drain), planted bugs (*.bug)
// and schemas (*.proto) of a folder, and long lines in its documents. Like [ReadFiles] it ignores testdata and
// hidden folders.
func CheckDocuments(dir fs.FS) ([]Finding, error) {
	var found []Finding
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && isIgnored(name):
			return fs.SkipDir
		case d.IsDir() || !slices.Contains([]string{".md", ".drain", ".bug", ".proto"}, path.Ext(name)):
			return nil
		}
		text, err := fs.ReadFile(dir, name)
		found = append(found, unclearIn(token.Position{Filename: name, Line: 1}, string(text))...)
		if path.Ext(name) == ".md" {
			found = append(found, longLines(name, string(text))...)
		}
		return err
	})
	return sortFindings(found), err
}

// longLines returns the long lines of a document. A table row and a line without a place to wrap
// (a link) may be long. In a code block, words that a shell or a program reads do not wrap.
func longLines(name, text string) []Finding {
	var found []Finding
	code := false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimLeft(line, " \t>")
		if strings.HasPrefix(trimmed, "```") {
			code = !code
		}
		length := utf8.RuneCountInString(line)
		if length <= maxLine || code || strings.HasPrefix(trimmed, "|") || !wraps(trimmed) {
			continue
		}
		found = append(found, Finding{
			Pos:  token.Position{Filename: name, Line: i + 1, Offset: i},
			What: fmt.Sprintf("the line has %d characters, and may have %d", length, maxLine),
		})
	}
	return found
}

// link is a link of a document, which does not wrap.
var link = regexp.MustCompile(`\[[^\]]*\](?:\([^)]*\)|: \S+)`)

// wraps reports whether a line has two words that can stand in two lines.
func wraps(line string) bool {
	line = strings.TrimLeft(line, "*-#0123456789. ")
	return len(strings.Fields(link.ReplaceAllString(line, "link"))) > 1
}
