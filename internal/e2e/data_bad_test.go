package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// strangeFiles fills a folder with what a task may leave: links that lead out of it, special files, names that are no
// text, holes, many files. It returns how many special files there are.
func strangeFiles(t *testing.T, dir string) (special int64) {
	t.Helper()
	write := func(name, content string) {
		must.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750))
		must.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o640))
	}
	for i := range 2000 {
		write(fmt.Sprintf("many/%d/%d", i/100, i), "small")
	}
	write(strings.Repeat("n", 255), "long name")
	write("no text \xff\xfe\n", "strange name")
	write("sparse", "")
	must.NoError(t, os.Truncate(filepath.Join(dir, "sparse"), 10<<30))
	must.NoError(t, os.Link(filepath.Join(dir, "many/0/0"), filepath.Join(dir, "hard")))
	for name, to := range map[string]string{"passwd": "/etc/passwd", "up": "../../../..", "inside": "many/0/1", "nowhere": "none"} {
		must.NoError(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	must.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	must.NoError(t, unix.Mknod(filepath.Join(dir, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "many/s"), Net: "unix"})
	must.NoError(t, err)
	socket.SetUnlinkOnClose(false)
	must.NoError(t, socket.Close())
	return 3
}

// treeOf describes what a copy keeps of each entry of a folder.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		var stat unix.Stat_t
		must.NoError(t, unix.Lstat(path, &stat))
		name, _ := filepath.Rel(dir, path)
		switch stat.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			content := "holes"
			if stat.Size < 1<<20 {
				text, err := os.ReadFile(path)
				must.NoError(t, err)
				content = string(text)
			}
			all[name] = fmt.Sprintf("%o, %d bytes, %d links: %s", stat.Mode, stat.Size, stat.Nlink, content)
		case unix.S_IFLNK:
			to, err := os.Readlink(path)
			must.NoError(t, err)
			all[name] = "link to " + to
		case unix.S_IFDIR:
			all[name] = fmt.Sprintf("folder %o", stat.Mode)
		default:
			all[name] = "special"
		}
		return nil
	}))
	return all
}

// operate runs a command of an operator, and returns its exit code and its output.
func operate(s *site, args ...string) (code int, text string) {
	s.t.Helper()
	c := exec.Command(s.binary, args...)
	c.Env = append(os.Environ(), "NOMAD_ADDR="+s.address, "NOMAD_TOKEN="+s.config.SecretID)
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		must.NoError(s.t, err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

// All that a task leaves on its disk moves or is counted, to another node and on the same one. Data above the limit of its
// group is given up: the operator sees that, also by the exit code, and the task starts without.
//
//race:skip its programs do not have the detector
func TestNode_strangeData(t *testing.T) {
	t.Parallel()
	s := startSite(t, 2, true)
	registerData(s, appends)
	first := s.running("web", 1)[0]
	special := strangeFiles(t, dataDir(s, first))
	before := treeOf(t, dataDir(s, first))
	code, text := operate(s, "node", "drain", "-enable", "-yes", first.NodeID)
	must.Zero(t, code, must.Sprint(text))
	copied(s, first)
	second := s.running("web", 1)[0]
	must.Eq(t, special, allocOf(s, second.ID).DataIn.Skipped)
	after := treeOf(t, dataDir(s, second))
	for name, what := range before {
		if what == "special" || name == "ids" {
			delete(before, name)
		}
	}
	must.Eq(t, first.ID+"\n"+second.ID+"\n", dataFile(s, second, "ids"))
	delete(after, "ids")
	must.Eq(t, before, after)

	// The other node is not eligible.
	_, err := s.api.Raw().Write("/v1/allocation/"+second.ID+"/stop", nil, nil, nil)
	must.NoError(t, err)
	s.await("the end of "+second.ID, func() bool {
		return allocOf(s, second.ID).NextAllocation != "" && allocOf(s, second.ID).ClientStatus == "complete"
	})
	third := s.running("web", 1)[0]
	must.Eq(t, second.NodeID, third.NodeID)
	must.Eq(t, strings.Join([]string{first.ID, second.ID, third.ID, ""}, "\n"), dataFile(s, third, "ids"))
	must.Eq(t, special-3, allocOf(s, third.ID).DataIn.Skipped)

	must.NoError(t, os.WriteFile(filepath.Join(dataDir(s, third), "large"), bytes.Repeat([]byte("x"), 10<<20+1), 0o600))
	_, err = s.api.Nodes().ToggleEligibility(first.NodeID, true, nil)
	must.NoError(t, err)
	code, text = operate(s, "node", "drain", "-enable", "-yes", third.NodeID)
	must.Eq(t, 5, code, must.Sprint(text))
	must.StrContains(t, text, "Data not copied: allocation "+third.ID)
	must.Eq(t, &wire.DataNotCopied{Count: 1, Allocs: []string{third.ID}}, s.drainOf(third.NodeID).DataNotCopied)
	fourth := s.running("web", 1)[0]
	must.StrContains(t, allocOf(s, fourth.ID).DataIn.Why, "the data is larger than the limit")
	must.Eq(t, "given up", allocOf(s, third.ID).DataOut.State)
	must.Eq(t, fourth.ID+"\n", dataFile(s, fourth, "ids"))
	s.stopJob("web")
}

// A node leaves in the middle of a copy. The task starts in any case, with all data or without any, and the servers
// report which.
//
//race:skip its programs do not have the detector
func TestNode_dataAndNodesThatLeave(t *testing.T) {
	for name, leave := range map[string]func(s *site, from, to *realNode){
		"the old node is purged": func(s *site, from, _ *realNode) {
			_, _, err := s.api.Nodes().Purge(nodeOf(s, from.name).ID, nil)
			must.NoError(s.t, err)
		},
		"a new node replaces the old one": func(s *site, from, _ *realNode) {
			s.crash(from)
			must.NoError(s.t, os.RemoveAll(from.data))
			s.begin(from)
		},
		"the new node drains, forced": func(s *site, _, to *realNode) {
			id := nodeOf(s, to.name).ID
			_, err := s.api.Nodes().UpdateDrainOpts(id, &api.DrainOptions{DrainSpec: &api.DrainSpec{Deadline: -1}}, nil)
			must.NoError(s.t, err)
			s.await("the end of the second drain", func() bool { return s.drainOf(id).Outcome != "" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSite(t, 3, true, "-data-rate", "1")
			registerData(s, appendsMore)
			first := s.running("web", 1)[0]
			from, to, _ := halfWay(s, first, 1<<20)
			leave(s, from, to)
			last := s.running("web", 1)[0]
			in := allocOf(s, last.ID).DataIn
			t.Logf("%s: %s %s", name, in.State, in.Why)
			lines := strings.Split(strings.TrimSuffix(dataFile(s, last, "ids"), "\n"), "\n")
			must.StrHasPrefix(t, last.ID, lines[len(lines)-1])
			switch in.State {
			case "copied":
				must.StrHasPrefix(t, first.ID, lines[0])
				_, sum, _ := strings.Cut(lines[0], " ")
				for _, line := range lines {
					must.StrHasSuffix(t, sum, line)
				}
			case "given up":
				must.Len(t, 1, lines)
				must.NotEq(t, "", in.Why)
			default:
				t.Fatalf("the task runs, and its data is %s", in.State)
			}
			s.await("the end of all copies", func() bool {
				left, err := filepath.Glob(filepath.Join(s.dir, "n*", "*", "*", ".incoming"))
				must.NoError(t, err)
				return len(left) == 0
			})
			s.stopJob("web")
		})
	}
}
