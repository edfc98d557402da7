package main

import (
	"os"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/mounts"
)

const someMounts = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:25 / /srv rw,relatime shared:2 - tmpfs tmpfs rw
31 30 8:1 /var/lib/a\040b /srv/with\040space rw - ext4 /dev/sda1 rw
40 22 0:25 /volumes/web/data /staging/web rw,nosuid - tmpfs tmpfs rw
41 22 0:25 /volumes/web/data /target/web ro,nosuid - tmpfs tmpfs rw
42 41 0:99 / /target/web rw - tmpfs other rw
`

func parsed(t *testing.T) mountTable {
	t.Helper()
	table, err := mounts.Parse(strings.NewReader(someMounts))
	must.NoError(t, err)
	return mountTable(table)
}

// A later mount covers an earlier one.
func TestMountTable_at(t *testing.T) {
	t.Parallel()
	at, found := parsed(t).at("/target/web")
	must.True(t, found)
	must.Eq(t, "0:99", at.Device)
	_, found = parsed(t).at("/srv/with")
	must.False(t, found)
}

// A folder is found by its file system, at all mounts of it.
func TestMountTable_folder(t *testing.T) {
	t.Parallel()
	table := parsed(t)
	for path, expected := range map[string]mounts.Mount{
		"/etc":                   {Device: "8:1", Root: "/etc"},
		"/srv/volumes/web/data":  {Device: "0:25", Root: "/volumes/web/data"},
		"/srv":                   {Device: "0:25", Root: "/"},
		"/srvother":              {Device: "8:1", Root: "/srvother"},
		"/srv/with space/volume": {Device: "8:1", Root: "/var/lib/a b/volume"},
	} {
		must.Eq(t, expected, table.folder(path), must.Sprint(path))
	}
	web := table.folder("/srv/volumes/web/data")
	must.Eq(t, []string{"/staging/web", "/target/web"}, table.showing(web))
	must.SliceEmpty(t, table.showing(table.folder("/srv/volumes/other/data")))
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
