package rawexec

import (
	"strings"
	"syscall"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec/shim"
)

// A command in a task has the user of the task with all groups, its folder and its environment, and never those of the
// driver.
func TestNewCommand(t *testing.T) {
	t.Parallel()
	cmd := newCommand(t.Context(), "/bin/x", []string{"x", "y"}, &shim.Spec{Dir: "/tmp", User: &shim.User{UID: 1, GID: 2, Groups: []uint32{3, 4}}}, false)
	must.Eq(t, &syscall.Credential{Uid: 1, Gid: 2, Groups: []uint32{3, 4}}, cmd.SysProcAttr.Credential)
	must.Eq(t, syscall.SIGKILL, cmd.SysProcAttr.Pdeathsig)
	must.Eq(t, []string{"x", "y"}, cmd.Args)
	must.Eq(t, "/tmp", cmd.Dir)
	must.Eq(t, []string{}, cmd.Env)
	must.Nil(t, newCommand(t.Context(), "/bin/x", []string{"x"}, &shim.Spec{}, false).SysProcAttr.Credential)
}

func TestParseLog(t *testing.T) {
	t.Parallel()
	for path, expected := range map[string]shim.Log{
		"":                     {},
		"/dev/null":            {Path: "/dev/null"},
		"/logs/a?b":            {Path: "/logs/a?b"},
		"rotate:/a/web.stdout": {Path: "/a/web.stdout", Rotate: true},
		"rotate:/a/w%20b.stdout?max_files=3&max_file_size=99": {Path: "/a/w b.stdout", Rotate: true, MaxFiles: 3, MaxFileSize: 99},
	} {
		got, err := parseLog(path)
		must.NoError(t, err)
		must.Eq(t, expected, got)
	}
	for _, path := range []string{"a", "rotate:a", "rotate://host/a", "rotate:/a?max_files=0", "rotate:/a?max_files=x", "rotate:/a?size=1", "http:/a", "rotate:/a?%", "rotate:"} {
		_, err := parseLog(path)
		must.ErrorContains(t, err, "log path", must.Sprint(path))
	}
}

func FuzzParseLog(f *testing.F) {
	f.Add("rotate:/a?max_files=3")
	f.Fuzz(func(t *testing.T, path string) {
		p, err := parseLog(path)
		if err == nil && p.Path != "" && !strings.HasPrefix(p.Path, "/") {
			t.Fatalf("%q is relative", p.Path)
		}
	})
}

func TestParseSignal(t *testing.T) {
	t.Parallel()
	for name, expected := range map[string]syscall.Signal{"": syscall.SIGINT, "SIGTERM": syscall.SIGTERM, "term": syscall.SIGTERM, "Hup": syscall.SIGHUP} {
		got, err := parseSignal(name)
		must.NoError(t, err)
		must.Eq(t, expected, got)
	}
	for _, name := range []string{"SIGNONE", "9", "SIG", "SIGSIGTERM", " "} {
		_, err := parseSignal(name)
		must.Error(t, err, must.Sprint(name))
	}
}
