package lint

import (
	"fmt"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxLine is the length of a line of a document, in characters.
const maxLine = 100

// CheckDocuments returns the long lines of the documents (*.md) of a folder. Like [ReadFiles] it ignores
// testdata and hidden folders.
func CheckDocuments(dir fs.FS) ([]Finding, error) {
	var found []Finding
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && isIgnored(name):
			return fs.SkipDir
		case path.Ext(name) != ".md":
			return nil
		}
		text, err := fs.ReadFile(dir, name)
		found = append(found, longLines(name, string(text))...)
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
