package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// Decision records have consecutive numbers, and their titles repeat them.
func TestProject_decisions(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(root(), "docs", "decisions")
	files, err := os.ReadDir(folder) // sorted by name
	must.NoError(t, err)
	must.Positive(t, len(files))
	for i, file := range files {
		text, err := os.ReadFile(filepath.Join(folder, file.Name()))
		must.NoError(t, err)
		must.StrHasPrefix(t, fmt.Sprintf("%04d-", i+1), file.Name())
		title, _, _ := strings.Cut(string(text), "\n")
		must.StrHasPrefix(t, fmt.Sprintf("# %d. ", i+1), title, must.Sprint(file.Name()))
	}
}
