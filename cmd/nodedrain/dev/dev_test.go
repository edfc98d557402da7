package dev

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A wrong configuration is refused before anything is made.
func TestStart_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want   string
		config Config
	}{
		{"the number of nodes is 17", Config{Nodes: 17}},
		{"the number of nodes is -1", Config{Nodes: -1}},
		{"the address: address 4646: missing port", Config{Addr: "4646"}},
		{`the address is "0.0.0.0:4646"`, Config{Addr: "0.0.0.0:4646"}},
		{`the address is "example.com:4646"`, Config{Addr: "example.com:4646"}},
		{"user", Config{User: "no such user"}},
		{"simulated tasks have no processes", Config{Simulated: true, User: "daemon"}},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			c.config.Dir = filepath.Join(t.TempDir(), "d")
			_, err := Start(t.Context(), c.config)
			must.ErrorContains(t, err, c.want)
			_, err = os.Stat(c.config.Dir)
			must.ErrorIs(t, err, os.ErrNotExist)
		})
	}
}

// A port that a process has is refused with the process, and the directory goes.
func TestStart_portInUse(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	defer listener.Close()
	dir := filepath.Join(t.TempDir(), "d")
	_, err = Start(t.Context(), Config{Dir: dir, Addr: listener.Addr().String()})
	must.ErrorContains(t, err, "address already in use: pid "+strconv.Itoa(os.Getpid())+" ")
	_, err = os.Stat(dir)
	must.ErrorIs(t, err, os.ErrNotExist)
}

// A directory is opened by one process at a time, and only if this package has made it.
func TestOpenDir(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	path := filepath.Join(top, "d")
	d, err := openDir(path)
	must.NoError(t, err)
	info, err := os.Stat(path)
	must.NoError(t, err)
	must.Eq(t, 0o711, info.Mode().Perm())
	_, err = openDir(path)
	must.ErrorContains(t, err, `"nodedrain dev" runs already`)
	must.ErrorContains(t, err, path+" is in use by the client with pid "+strconv.Itoa(os.Getpid()))

	// With nodes it stays as it is, for the next process.
	must.NoError(t, os.Mkdir(d.file("node-1"), 0o700))
	must.NoError(t, d.leave())
	d, err = openDir(path)
	must.NoError(t, err)
	names, err := d.nodes()
	must.NoError(t, err)
	must.Eq(t, []string{"node-1"}, names)
	must.NoError(t, d.remove())
	_, err = os.Stat(path)
	must.ErrorIs(t, err, os.ErrNotExist)

	must.NoError(t, os.WriteFile(filepath.Join(top, "file"), nil, 0o600))
	must.NoError(t, os.Symlink(top, filepath.Join(top, "link")))
	must.NoError(t, os.Mkdir(filepath.Join(top, "open"), 0o700))
	must.NoError(t, os.Chmod(filepath.Join(top, "open"), 0o777))
	for name, want := range map[string]string{
		"":     "is not empty, and \"nodedrain dev\" did not make it",
		"file": "is not a directory",
		"link": "is not a directory",
		"open": "other users may write to",
	} {
		_, err := openDir(filepath.Join(top, name))
		must.ErrorContains(t, err, want)
	}
	must.NoError(t, os.Chmod(top, 0o777))
	_, err = openDir(filepath.Join(top, "new"))
	must.ErrorContains(t, err, "other users may write to "+top)
}

// The folder that stops the users of tasks is named.
func TestClosedFolder(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	closed := filepath.Join(top, "closed")
	must.NoError(t, os.Mkdir(closed, 0o700))
	must.Eq(t, closed, closedFolder(filepath.Join(closed, "d")))
	must.Eq(t, "", closedFolder("/usr"))
}

// Only sockets that listen at the port count.
func TestAddListeners(t *testing.T) {
	t.Parallel()
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1226 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0 100 0 0 10 0
   1: 0100007F:1226 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 222 1 0 100 0 0 10 0
   2: 0100007F:1227 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 0 100 0 0 10 0
   3: short
`
	got := make(map[string]bool)
	addListeners(got, table, 4646)
	must.Eq(t, map[string]bool{"socket:[111]": true}, got)
	must.Eq(t, "", listening("127.0.0.1:none"))
	must.Eq(t, "", listening("none"))
}

// The example jobs are valid. Their tasks run as the user.
func TestExampleJobs(t *testing.T) {
	t.Parallel()
	jobs, err := (&Cluster{config: Config{User: "www"}}).exampleJobs()
	must.NoError(t, err)
	must.Eq(t, 7, wanted(jobs))
	for _, j := range jobs {
		j.Canonicalize()
		must.NoError(t, j.Validate())
		must.Eq(t, "www", j.TaskGroups[0].Tasks[0].User)
	}
}

// The guide begins with a task of the service.
func TestExample(t *testing.T) {
	t.Parallel()
	must.Nil(t, example(nil))
	tasks := []*cluster.Allocation{{ID: "a", JobID: "api"}, {ID: "b", JobID: "web"}, {ID: "c", JobID: "web"}}
	must.Eq(t, "b", string(example(tasks).ID))
	must.True(t, strings.HasPrefix(DefaultDir(), os.TempDir()))
}
