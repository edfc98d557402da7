package node

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// outsider is a user of the machine who owns no file of the client.
const outsider = 65534

// usable returns the paths that another user of the machine can read or write.
func usable(t *testing.T, paths []string) string {
	t.Helper()
	return usableBy(t, outsider, paths)
}

// usableBy returns the paths that a user and its group can read or write.
func usableBy(t *testing.T, id uint32, paths []string) string {
	t.Helper()
	sh := exec.Command("/bin/sh", "-c", `while read -r p; do if [ -r "$p" ] || [ -w "$p" ]; then echo "$p"; fi; done`)
	sh.Dir, sh.Stdin = "/", strings.NewReader(strings.Join(paths, "\n")+"\n")
	sh.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	out, err := sh.CombinedOutput()
	must.NoError(t, err, must.Sprint(string(out)))
	return string(out)
}

// Another user of the machine can neither read nor write the files of the client: the secret of the
// node, the records with the jobs and their environments, the logs and folders of tasks, the
// sockets of plugins. The user sees no environment of the client's processes, and no command line
// contains a secret.
func TestSecurity_LocalUserOfANode(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root may start a process of another user")
	}
	const canary = "hunter2"
	w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
	for open := filepath.Dir(w.config.DataDir); open != os.TempDir(); open = filepath.Dir(open) {
		must.NoError(t, os.Chmod(open, 0o755)) // the folders of the test must not keep others out
	}
	must.Eq(t, filepath.Dir(w.config.DataDir)+"\n", usable(t, []string{filepath.Dir(w.config.DataDir), "/etc/shadow"}), must.Sprint("the check finds what is open"))
	w.begin()
	defer w.stop()
	w.awaitMock()
	alloc := w.alloc("a1", `{"stdout_string": "`+canary+`\n"}`)
	alloc.Job.TaskGroups[0].Tasks[0].Env = map[string]string{"PASSWORD": canary}
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 2, Allocs: []*cluster.Allocation{alloc}}
	w.awaitStatus("a1", cluster.ClientRunning)

	var paths []string
	holding := map[string]bool{}
	for _, top := range []string{w.config.DataDir, w.config.RunDir} {
		must.NoError(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // the client writes meanwhile: it renames files and removes them
			}
			must.NoError(t, err)
			paths = append(paths, path)
			if !d.Type().IsRegular() {
				return nil
			}
			content, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			must.NoError(t, err)
			folder := filepath.Base(filepath.Dir(path))
			holding[folder] = holding[folder] || strings.Contains(string(content), canary)
			return nil
		}))
	}
	must.True(t, holding[recordsDir], must.Sprint("the records have the environment"))
	must.Eq(t, "", usable(t, paths))

	secret := w.node.home.identity.Secret
	ours := []int{os.Getpid(), w.kept()["mock"].Process.Process.PID}
	for _, pid := range ours {
		proc := filepath.Join("/proc", strconv.Itoa(pid))
		must.Eq(t, "", usable(t, []string{proc + "/environ", proc + "/mem", proc + "/fd"}))
		line, err := os.ReadFile(proc + "/cmdline")
		must.NoError(t, err)
		must.StrNotContains(t, string(line), secret)
		must.StrNotContains(t, string(line), canary)
	}
}
