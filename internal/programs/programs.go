// Package programs builds the programs of this repository for tests.
package programs

import (
	"os/exec"
	"testing"
)

// Build writes a program to path. The source is a folder, "." or beginning with "../", or an import path.
//
// go run links a program once and keeps it in Go's cache, by its inputs. go build links it at each call, for six times
// as much processor time. So all tests of a run share the program, and so do later runs.
func Build(t testing.TB, source, path string) {
	t.Helper()
	// go run executes "cp PROGRAM path".
	out, err := exec.CommandContext(t.Context(), "go", "run", "-buildvcs=false", "-exec", "cp", source, path).CombinedOutput()
	if err != nil {
		t.Fatalf("build %s: %v\n%s", source, err, out)
	}
}
