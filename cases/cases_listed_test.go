package cases_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// caseCount is how many cases must each have a test.
const caseCount = 38

// TESTING.md says which files tell which case: every one of them, and none that
// there is not.
func TestCases_AreListed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../TESTING.md")
	must.NoError(t, err)
	var listed []string
	cases := map[int]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| ([0-9]+) \\| .* \\| (`.*`) \\|$").FindAllStringSubmatch(string(page), -1) {
		number, err := strconv.Atoi(row[1])
		must.NoError(t, err)
		must.Between(t, 1, number, caseCount)
		cases[number] = true
		for name := range strings.SplitSeq(strings.Trim(row[2], "`"), "`, `") {
			listed = append(listed, fmt.Sprintf("%s/case-%02d-%s.drain", casesIn, number, name))
		}
	}
	must.MapLen(t, caseCount, cases)
	files, err := filepath.Glob(casesIn + "/case-*.drain")
	must.NoError(t, err)
	must.Eq(t, files, listed, must.Sprint("in the order of their names"))
}
