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

// docs/cases.md lists the files of each case. It names every file and no other.
func TestCases_AreListed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/cases.md")
	must.NoError(t, err)
	var listed []string
	cases, number := map[int]bool{}, 0
	for line := range strings.Lines(string(page)) {
		if item := regexp.MustCompile(`^([0-9]+)\. `).FindStringSubmatch(line); item != nil {
			number, err = strconv.Atoi(item[1])
			must.NoError(t, err)
			must.Between(t, 1, number, caseCount)
			cases[number] = true
		}
		if number == 0 {
			continue // above the list
		}
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line, -1) {
			listed = append(listed, fmt.Sprintf("%s/case-%02d-%s.drain", casesIn, number, name[1]))
		}
	}
	must.MapLen(t, caseCount, cases)
	files, err := filepath.Glob(casesIn + "/case-*.drain")
	must.NoError(t, err)
	must.Eq(t, files, listed, must.Sprint("in the order of their names"))
}
