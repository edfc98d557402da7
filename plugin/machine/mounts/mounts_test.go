package mounts_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/shoenig/test"
	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/mounts"
)

const example = `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
37 36 0:31 / /srv/with\040blank\134x rw - tmpfs none rw
38 36 0:32 / /srv nosuid,ro shared:1 master:2 propagate_from:3 - nfs4 host:/export rw
`

func TestParse(t *testing.T) {
	table, err := mounts.Parse(strings.NewReader(example))
	must.NoError(t, err)
	must.Eq(t, mounts.Table{
		{Point: "/mnt2", Device: "98:0", Root: "/mnt1", Type: "ext3", Source: "/dev/root", Options: []string{"rw", "errors=continue"}},
		{Point: `/srv/with blank\x`, Device: "0:31", Root: "/", Type: "tmpfs", Source: "none", Options: []string{"rw"}},
		{Point: "/srv", Device: "0:32", ReadOnly: true, Root: "/", Type: "nfs4", Source: "host:/export", Options: []string{"rw"}},
	}, table)
	must.True(t, table.Has("/srv"))
	must.False(t, table.Has("/sr"))
	must.Eq(t, []string{`/srv/with blank\x`, "/srv"}, table.Below("/srv"))
	must.SliceEmpty(t, table.Below("/sr"))
}

func TestParse_damaged(t *testing.T) {
	for _, line := range []string{"36 35 98:0 /mnt1 /mnt2 rw", "36 - a b", "36 35 98:0 / / rw - ext3"} {
		table, err := mounts.Parse(strings.NewReader(example + line + "\n" + example))
		must.ErrorContains(t, err, "line 4: it has too few fields")
		must.SliceLen(t, 6, table)
	}
	_, err := mounts.Parse(strings.NewReader(strings.Repeat("x", 1<<18)))
	must.Error(t, err)
}

func TestRead(t *testing.T) {
	table, err := mounts.Read()
	must.NoError(t, err)
	must.True(t, table.Has("/proc"))
}

// A process shows by its working directory, and by a file that it has open or mapped, also a deleted one.
func TestHolders(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.NoError(t, err)
	me := func() bool {
		found := mounts.NewSearch().Holders(context.Background(), dir) // it rests after its first pass
		return slices.ContainsFunc(found, func(h mounts.Holder) bool { return h.PID == os.Getpid() && strings.Contains(h.Command, "mounts") })
	}
	must.False(t, me())
	f, err := os.Create(filepath.Join(dir, "file"))
	must.NoError(t, err)
	must.True(t, me())
	must.NoError(t, os.Remove(f.Name()))
	must.True(t, me())
	must.NoError(t, f.Truncate(1))
	mapped, err := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_READ, unix.MAP_SHARED)
	must.NoError(t, err)
	must.NoError(t, f.Close())
	must.True(t, me(), must.Sprint("it is mapped"))
	must.NoError(t, unix.Munmap(mapped))
	must.False(t, me())
	t.Chdir(dir)
	must.True(t, me())
}

// Searches that wait share the next pass over /proc, and each learns the processes of its own path. A search whose
// context ends does not take the pass from the others.
func TestSearch_sharesPasses(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must.NoError(t, err)
	f, err := os.Create(filepath.Join(root, "file"))
	must.NoError(t, err)
	defer f.Close()
	synctest.Test(t, func(t *testing.T) {
		search := mounts.NewSearch()
		release := mounts.Hold(search)
		var running sync.WaitGroup
		for i := range 100 {
			running.Go(func() {
				path := f.Name()
				if i%2 > 0 {
					path = filepath.Join(root, fmt.Sprint("other-", i))
				}
				isMe := func(h mounts.Holder) bool { return h.PID == os.Getpid() }
				test.EqOp(t, i%2 == 0, slices.ContainsFunc(search.Holders(t.Context(), path), isMe))
			})
		}
		ended, end := context.WithCancel(t.Context())
		end()
		running.Go(func() { test.SliceEmpty(t, search.Holders(ended, f.Name())) })
		synctest.Wait()
		must.EqOp(t, 51, release())
		running.Wait()
		must.False(t, mounts.Waits(search), must.Sprint("a second pass"))
	})
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Fuzz(func(t *testing.T, text string) {
		table, err := mounts.Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, m := range table {
			must.True(t, table.Has(m.Point))
		}
	})
}
