package planted_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
)

const root = "../.."

func allBugs(t *testing.T) []*planted.Bug {
	t.Helper()
	bugs, err := planted.Load(os.DirFS("bugs"))
	must.NoError(t, err)
	return bugs
}

// Every bug matches the product's code and compiles.
func TestBugs_ApplyAndCompile(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	bugs := allBugs(t)
	top, err := filepath.Abs(root)
	must.NoError(t, err)
	overlay, err := planted.Plant(top, t.TempDir(), bugs)
	must.NoError(t, err)
	args := []string{"build", "-overlay", overlay}
	for _, b := range bugs {
		for _, e := range b.Edits {
			if folder := "./" + e.Folder; !slices.Contains(args, folder) {
				args = append(args, folder)
			}
		}
	}
	build := exec.CommandContext(t.Context(), "go", args...)
	build.Dir = top
	output, err := build.CombinedOutput()
	must.NoError(t, err, must.Sprintf("%s", output))
}

// Two bugs that are equal would count twice.
func TestBugs_Differ(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	for _, b := range allBugs(t) {
		edits := ""
		for _, e := range b.Edits {
			edits += fmt.Sprintln(e.Folder, e.Func, e.Old, e.New)
		}
		for _, text := range []string{b.Title, edits} {
			must.MapNotContainsKey(t, names, text, must.Sprintf("%s equals %s", b.Name, names[text]))
			names[text] = b.Name
		}
	}
}
