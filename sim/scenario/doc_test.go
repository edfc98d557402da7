package scenario_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// The manual speaks of every word of the language: what an error says that there is
// stands there, as a parameter with its value or as a word.
func TestDoc_SpeaksOfEveryWord(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("doc.go")
	must.NoError(t, err)
	manual := string(source)
	listed := regexp.MustCompile(`(?:there are|is none of) (.*)`)
	for _, line := range []string{
		"???????????", "cluster ???????????", "drainer ???????????", "node n7 ???????????", "job x ???????????",
		"alloc web ???????????", "client web ???????????", "run ???????????", "at 0s ???????????",
		"at 0s before ??????????? restore", "at 0s drain n1 ???????????", "at 0s cancel n1 ???????????",
		"at 0s edit web ???????????", "at 0s place web ???????????", "at 0s node n1 ???????????",
		"at 0s node n1 down ???????????", "at 0s elect ???????????", "at 0s pause ???????????",
		"at 0s clock ???????????", "at 0s fault ???????????", "at 0s fault apply/slow ???????????",
		"at 0s fault apply/slow on=???????????", "node n7 status=?", "job x type=?", "alloc web health=?",
		"alloc web client=?", "alloc web desired=?", "drainer below-budget=?", "drainer plugins=?", "drainer completion=?",
	} {
		_, _, err := scenario.Parse("case.drain", strings.NewReader(lines+line+"\n"))
		must.Error(t, err)
		words := listed.FindStringSubmatch(err.Error())
		must.Len(t, 2, words, must.Sprint(err))
		for word := range strings.SplitSeq(words[1], ", ") {
			spoken := regexp.MustCompile(fmt.Sprintf(`(^|[^a-z-])%s($|[^a-z-])`, regexp.QuoteMeta(word)))
			must.True(t, spoken.MatchString(manual), must.Sprintf("doc.go does not speak of %q: %s", word, line))
		}
	}
}

// The scenario that the manual begins with is one.
func TestDoc_Example(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("doc.go")
	must.NoError(t, err)
	s, warnings := parse(t, example(string(source)))
	must.SliceEmpty(t, warnings)
	must.Len(t, 2, s.Prose)
	must.Len(t, 1, s.Events)
	must.StrContains(t, s.End, "n1 complete")
}

// example is the first block of code in a comment.
func example(source string) string {
	var block []string
	for line := range strings.SplitSeq(source, "\n") {
		code, is := strings.CutPrefix(line, "//\t")
		switch {
		case is:
			block = append(block, code)
		case line == "//" && len(block) > 0:
			block = append(block, "")
		case len(block) > 0:
			return strings.Join(block, "\n")
		}
	}
	return ""
}
