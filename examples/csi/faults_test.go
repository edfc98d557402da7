package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

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

// call finds the fault of a call and lets it act.
func (f *faults) call(ctx context.Context, t *testing.T, c call) error {
	t.Helper()
	name, err := f.find(c)
	must.NoError(t, err)
	return f.act(ctx, c, name)
}

// A fault fails as many calls as it states, and begins again when the file changes.
func TestFaults_fail(t *testing.T) {
	t.Parallel()
	f, replace := faultsOf(t, `[{"call":"NodeStageVolume","volume":"web","fail":2,"code":"UNAVAILABLE"},{"call":"DeleteVolume","fail":-1}]`)
	stage := call{Name: nodeStage, Volume: "web"}
	for range 2 {
		must.Eq(t, codes.Unavailable, status.Code(f.call(t.Context(), t, stage)))
		must.NoError(t, f.call(t.Context(), t, call{Name: nodeStage, Volume: "other"}))
		must.Eq(t, codes.Internal, status.Code(f.call(t.Context(), t, call{Name: deleteVolume, Volume: "web"})))
	}
	must.NoError(t, f.call(t.Context(), t, stage))
	must.Error(t, f.call(t.Context(), t, call{Name: deleteVolume}))
	replace(`[{"fail":1}]`)
	must.Error(t, f.call(t.Context(), t, stage))
	must.NoError(t, f.call(t.Context(), t, stage))
}

// Without a file, and with an empty one, nothing fails. With a damaged one each call fails.
func TestFaults_file(t *testing.T) {
	t.Parallel()
	f, replace := faultsOf(t, ``)
	must.NoError(t, f.call(t.Context(), t, call{Name: nodeStage}))
	must.NoError(t, os.Remove(f.path))
	must.NoError(t, f.call(t.Context(), t, call{Name: nodeStage}))
	must.NoError(t, (&faults{}).call(t.Context(), t, call{Name: nodeStage}))
	for _, text := range []string{`[{"delay":"-1s"}]`, `[{"delay":"soon"}]`, `[{"dealy":"1s"}]`, `{`, `[{"code":"BAD"}]`} {
		replace(text)
		_, err := f.find(call{Name: nodeStage})
		must.ErrorContains(t, err, "read the faults", must.Sprint(text))
	}
}

// A delay ends, and ends early with its caller. A call that hangs ends with its caller, or when the
// file changes.
func TestFaults_wait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, replace := faultsOf(t, `[{"call":"NodeStageVolume","delay":"5s"},{"call":"NodeUnstageVolume","hang":true}]`)
		begin := time.Now()
		must.NoError(t, f.call(t.Context(), t, call{Name: nodeStage}))
		must.Eq(t, 5*time.Second, time.Since(begin))

		for _, name := range []string{nodeStage, nodeUnstage} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			must.ErrorIs(t, f.call(ctx, t, call{Name: name}), context.DeadlineExceeded)
			cancel()
		}

		begin = time.Now()
		ended := make(chan error)
		go func() { ended <- f.call(t.Context(), t, call{Name: nodeUnstage}) }()
		time.Sleep(time.Hour)
		replace(`[]`)
		must.NoError(t, <-ended)
		must.Between(t, time.Hour, time.Since(begin), time.Hour+2*poll)
	})
}

func FuzzFaults(f *testing.F) {
	f.Add([]byte(`[{"call":"NodeStageVolume","volume":"web","delay":"5s","hang":true,"fail":2,"code":"UNAVAILABLE","after":true}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parseFaults(text)
		if err != nil {
			return
		}
		for _, one := range all {
			must.GreaterEq(t, 0, one.Delay)
		}
	})
}
