package host_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// A plugin with an old go-plugin has its socket in the folder for temporary files, and is killed: by the host, by
// others, while no client runs, or by the next client. Nothing is left there. Bug: each killed process left its socket.
func TestOldSocket(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(*bench, *host.Instance){
		"killed": func(b *bench, i *host.Instance) { must.NoError(b.t, i.Kill(b.t.Context())) },
		"killed by others": func(b *bench, i *host.Instance) {
			must.NoError(b.t, syscall.Kill(i.Record().Process.PID, syscall.SIGKILL))
			<-i.Done()
		},
		"killed while no client runs": func(b *bench, i *host.Instance) {
			i.Detach()
			running, err := process.Open(i.Record().Process)
			must.NoError(b.t, err)
			must.NoError(b.t, running.Signal(syscall.SIGKILL))
			must.NoError(b.t, running.Wait(b.t.Context()))
			must.NoError(b.t, running.Close())
			must.NoError(b.t, b.program().End(b.t.Context(), i.Record()))
		},
		"taken over, and killed": func(b *bench, i *host.Instance) {
			i.Detach()
			next, err := b.program().Launch(b.t.Context(), i.Record(), keep)
			must.NoError(b.t, err)
			must.True(b.t, next.TakenOver())
			must.NoError(b.t, next.Kill(b.t.Context()))
		},
		"ended, and does not answer": func(b *bench, i *host.Instance) {
			i.Detach()
			must.NoError(b.t, syscall.Kill(i.Record().Process.PID, syscall.SIGSTOP))
			must.NoError(b.t, b.program().End(b.t.Context(), i.Record()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temporary, err := os.MkdirTemp("", "nd") // the path of a socket is short
			must.NoError(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(temporary) })
			b := newBench(t, script{OldSocket: true})
			b.options.Env = append(b.options.Env, "TMPDIR="+temporary)
			i, err := b.program().Launch(t.Context(), host.Record{}, keep)
			must.NoError(t, err)
			files, err := os.ReadDir(temporary)
			must.NoError(t, err)
			must.SliceLen(t, 1, files)
			ends(b, i)
			files, err = os.ReadDir(temporary)
			must.NoError(t, err)
			must.SliceEmpty(t, files)
		})
	}
}
