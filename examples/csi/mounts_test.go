package main

import (
	"os"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

const someMounts = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:25 / /srv rw,relatime shared:2 - tmpfs tmpfs rw
31 30 8:1 /var/lib/a\040b /srv/with\040space rw - ext4 /dev/sda1 rw
40 22 0:25 /volumes/web/data /staging/web rw,nosuid - tmpfs tmpfs rw
41 22 0:25 /volumes/web/data /target/web ro,nosuid - tmpfs tmpfs rw
42 41 0:99 / /target/web rw - tmpfs other rw
this line is damaged
`

func TestParseMounts(t *testing.T) {
	t.Parallel()
	table := parseMounts(someMounts)
	must.Len(t, 6, table)
	at, ok := table.at("/srv/with space")
	must.True(t, ok)
	must.Eq(t, mount{device: "8:1", root: "/var/lib/a b", point: "/srv/with space"}, at)
	_, ok = table.at("/srv/with")
	must.False(t, ok)
	// A later mount covers an earlier one.
	at, ok = table.at("/target/web")
	must.True(t, ok)
	must.Eq(t, "0:99", at.device)
}

// A folder is found by its file system, at all mounts of it.
func TestMountTable_folder(t *testing.T) {
	t.Parallel()
	table := parseMounts(someMounts)
	for path, want := range map[string]mount{
		"/etc":                   {device: "8:1", root: "/etc"},
		"/srv/volumes/web/data":  {device: "0:25", root: "/volumes/web/data"},
		"/srv":                   {device: "0:25", root: "/"},
		"/srvother":              {device: "8:1", root: "/srvother"},
		"/srv/with space/volume": {device: "8:1", root: "/var/lib/a b/volume"},
	} {
		must.Eq(t, want, table.folder(path), must.Sprint(path))
	}
	web := table.folder("/srv/volumes/web/data")
	must.Eq(t, []string{"/staging/web", "/target/web"}, table.showing(web))
	must.SliceEmpty(t, table.showing(table.folder("/srv/volumes/other/data")))
}

// The table of this machine has a root.
func TestReadMounts(t *testing.T) {
	t.Parallel()
	table, err := readMounts()
	must.NoError(t, err)
	_, ok := table.at("/")
	must.True(t, ok)
}

func FuzzMounts(f *testing.F) {
	f.Add(someMounts, "/srv/volumes/web/data")
	f.Add("1 1 0:1 / / ro", "/")
	f.Fuzz(func(t *testing.T, text, path string) {
		table := parseMounts(text)
		must.LessEq(t, strings.Count(text, "\n")+1, len(table))
		for _, m := range table {
			at, ok := table.at(m.point)
			must.True(t, ok)
			must.Eq(t, m.point, at.point)
		}
		table.showing(table.folder(path))
	})
}

func TestResolve(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "resolve")
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, os.RemoveAll(dir)) })
	real := resolve(dir)
	must.NoError(t, os.Symlink(dir, dir+"/link"))
	must.Eq(t, real+"/target", resolve(dir+"/link/target"))
	must.Eq(t, real+"/target", resolve(dir+"//x/../target/"))
	must.Eq(t, dir+"/missing/target", resolve(dir+"/missing/./target"))
}
