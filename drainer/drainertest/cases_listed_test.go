package drainertest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/shoenig/test/must"
)

// TESTING.md says which test tells which case: every one of them, and none that
// there is not.
func TestCases_AreListed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../TESTING.md")
	must.NoError(t, err)
	listed := regexp.MustCompile("TestCase[0-9]{2}_[A-Za-z0-9]+").FindAllString(string(page), -1)

	files, err := filepath.Glob("*_test.go")
	must.NoError(t, err)
	var told []string
	for _, name := range files {
		source, err := os.ReadFile(name)
		must.NoError(t, err)
		for _, match := range regexp.MustCompile(`(?m)^func (TestCase[0-9]{2}_[A-Za-z0-9]+)\(`).FindAllStringSubmatch(string(source), -1) {
			told = append(told, match[1])
		}
	}
	slices.Sort(listed)
	listed = slices.Compact(listed)
	slices.Sort(told)
	must.SliceNotEmpty(t, told)
	must.Eq(t, told, listed)
	for n := 1; n <= 38; n++ {
		prefix := regexp.MustCompile("^TestCase" + string(rune('0'+n/10)) + string(rune('0'+n%10)) + "_")
		must.True(t, slices.ContainsFunc(told, prefix.MatchString), must.Sprintf("case %d has no test", n))
	}
}
