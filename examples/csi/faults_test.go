package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/shoenig/test/must"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// faultsOf returns the faults of a file, and a function that replaces its text.
func faultsOf(t *testing.T, text string) (*faults, func(string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "faults")
	replace := func(text string) {
		must.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
		must.NoError(t, os.Rename(path+".new", path))
	}
	replace(text)
	return &faults{path: path}, replace
}

// A fault fails as many calls as it states, and begins again when the file changes.
func TestFaults_fail(t *testing.T) {
	t.Parallel()
	f, replace := faultsOf(t, `[{"call":"NodeStageVolume","fail":2},{"call":"DeleteVolume","fail":-1}]`)
	stage := call{Name: nodeStage, Volume: "web"}
	for range 2 {
		must.Eq(t, codes.Internal, status.Code(f.act(t.Context(), stage)))
		must.NoError(t, f.act(t.Context(), call{Name: nodeUnstage, Volume: "web"}))
		must.Eq(t, codes.Internal, status.Code(f.act(t.Context(), call{Name: deleteVolume, Volume: "web"})))
	}
	must.NoError(t, f.act(t.Context(), stage))
	must.Error(t, f.act(t.Context(), call{Name: deleteVolume}))
	replace(`[{"fail":1}]`)
	must.Error(t, f.act(t.Context(), stage))
	must.NoError(t, f.act(t.Context(), stage))
}

// Without a file, and with an empty one, nothing fails. With a damaged one each call fails.
func TestFaults_file(t *testing.T) {
	t.Parallel()
	f, replace := faultsOf(t, ``)
	must.NoError(t, f.act(t.Context(), call{Name: nodeStage}))
	must.NoError(t, os.Remove(f.path))
	must.NoError(t, f.act(t.Context(), call{Name: nodeStage}))
	must.NoError(t, (&faults{}).act(t.Context(), call{Name: nodeStage}))
	for _, text := range []string{`[{"delay":"soon"}]`, `[{"delay":"-1s"}]`, `[{"dealy":"1s"}]`, `{`} {
		replace(text)
		must.ErrorContains(t, f.act(t.Context(), call{Name: nodeStage}), "read the faults", must.Sprint(text))
	}
}
