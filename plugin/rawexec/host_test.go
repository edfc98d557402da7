package rawexec_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/shoenig/test/must"
	"github.com/shoenig/test/wait"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed-f9cf0b39/nodedrain/internal/freshmachine"
	"github.com/seed-f9cf0b39/nodedrain/plugin"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/base"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// asPlugin makes the test binary a plugin process. With shim.Argument it is a shim.
const asPlugin = "serve-raw_exec"

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == asPlugin {
		if groups := os.Args[3]; groups != "" {
			if err := syscall.Mount(groups, "/etc/group", "", syscall.MS_BIND, ""); err != nil {
				os.Exit(1)
			}
		}
		sdk.Serve(rawexec.New(rawexec.Options{Root: os.Args[2]}))
		return
	}
	freshmachine.Enter()
	m.Run()
}

// node is a machine with its folder of shims. Plugin processes come and go.
type node struct {
	*testing.T
	dir  string
	root string // below which control groups are found
	// groups is the file that plugin processes see as /etc/group, or empty.
	groups string
	id     string // in the names of control groups: other pid namespaces have the same pids
	n      int
}

func newNode(t *testing.T) *node {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: it creates control groups")
	}
	return &node{T: t, dir: t.TempDir(), root: "/", id: rand.Text()}
}

// launched returns a node with a plugin process.
func launched(t *testing.T) (*node, *pluginProcess) {
	t.Helper()
	n := newNode(t)
	return n, n.launch()
}

// only gives the machine only control groups of v1, or none.
func (n *node) only(kind string) {
	n.Helper()
	all, err := os.ReadFile("/proc/self/mountinfo")
	must.NoError(n, err)
	var mounts string
	for line := range strings.Lines(string(all)) {
		if kind == "v1" && strings.Contains(line, " - cgroup ") {
			mounts += line
		}
	}
	if kind == "v1" && !strings.Contains(mounts, "freezer") {
		n.Skip("needs the freezer of cgroup v1")
	}
	n.root = filepath.Join(n.dir, "root")
	must.NoError(n, os.MkdirAll(filepath.Join(n.root, "proc/self"), 0o755))
	must.NoError(n, os.Symlink("/sys", filepath.Join(n.root, "sys")))
	must.NoError(n, os.WriteFile(filepath.Join(n.root, "proc/self/mountinfo"), []byte(mounts), 0o644))
}

func (n *node) shims() string { return filepath.Join(n.dir, "shims") }

// pluginProcess is one process of the plugin, with a connection to it.
type pluginProcess struct {
	pb.DriverClient
	conn   *grpc.ClientConn
	client *goplugin.Client
}

// kill ends the plugin's process like a crash.
func (p *pluginProcess) kill(t *testing.T) {
	t.Helper()
	pid, err := strconv.Atoi(p.client.ID())
	must.NoError(t, err)
	must.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	p.client.Kill()
}

// conns is the host's half of a plugin: a connection.
type conns struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (conns) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("this is the host")
}

func (conns) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return c, nil
}

// launch starts a plugin process, as a client does. Its environment has a variable that no task may
// see.
func (n *node) launch() *pluginProcess {
	n.Helper()
	cmd := exec.Command("/proc/self/exe", asPlugin, n.root, n.groups)
	if n.groups != "" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}
	sockets, err := os.MkdirTemp("", "nd") // a killed plugin leaves its socket
	must.NoError(n, err)
	n.Cleanup(func() { _ = os.RemoveAll(sockets) })
	cmd.Env = append(os.Environ(), "OF_THE_PLUGIN=secret", goplugin.EnvUnixSocketDir+"="+sockets)
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  plugin.Handshake(),
		VersionedPlugins: map[int]goplugin.PluginSet{plugin.ProtocolVersion: {plugin.DriverName: conns{}}},
		Cmd:              cmd,
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		Logger:           hclog.NewNullLogger(),
		SyncStderr:       n.Output(),
	})
	n.Cleanup(client.Kill)
	protocol, err := client.Client()
	must.NoError(n, err)
	raw, err := protocol.Dispense(plugin.DriverName)
	must.NoError(n, err)
	p := &pluginProcess{client: client, conn: raw.(*grpc.ClientConn)}
	p.DriverClient = pb.NewDriverClient(p.conn)
	config, err := sdk.Encode(map[string]any{"enabled": true, "shim_dir": n.shims()})
	must.NoError(n, err)
	_, err = base.NewBasePluginClient(p.conn).SetConfig(context.Background(), &base.SetConfigRequest{MsgpackConfig: config})
	must.NoError(n, err)
	return p
}

// relaunch ends the plugin's process like a crash, and starts the next one.
func (n *node) relaunch(p *pluginProcess) *pluginProcess {
	n.Helper()
	p.kill(n.T)
	return n.launch()
}

// task returns a task that runs a shell script.
func (n *node) task(script string) *pb.TaskConfig {
	n.Helper()
	n.n++
	alloc := "test-" + n.id
	name := "web" + strconv.Itoa(n.n)
	dir := filepath.Join(n.dir, "alloc")
	must.NoError(n, os.MkdirAll(filepath.Join(dir, name), 0o755))
	c := &pb.TaskConfig{
		Id: alloc + "/" + name + "/" + strconv.Itoa(n.n), Name: name, AllocId: alloc, AllocDir: dir,
		MsgpackDriverConfig: n.config(map[string]any{"command": "/bin/sh", "args": []string{"-c", script}}),
		StdoutPath:          filepath.Join(dir, name+".out"),
		StderrPath:          filepath.Join(dir, name+".err"),
		Env:                 map[string]string{"MARK": n.mark()},
	}
	n.Cleanup(func() { // a failed test leaves nothing
		p := n.launch()
		p.DestroyTask(context.Background(), &pb.DestroyTaskRequest{TaskId: c.Id, Force: true})
		p.client.Kill()
	})
	return c
}

// mark is the value by which processes of this test are found.
func (n *node) mark() string { return n.dir }

// processes returns the pids of all processes of this test's tasks, also of those that left their
// session.
func (n *node) processes() []int {
	n.Helper()
	entries, err := os.ReadDir("/proc")
	must.NoError(n, err)
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := process.Environment(pid)
		if err == nil && strings.Contains(string(env), "MARK="+n.mark()+"\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// living waits until a number of processes of this test's tasks live, and returns their pids.
func (n *node) living(count int) (pids []int) {
	n.Helper()
	n.until(func() bool {
		pids = n.processes()
		return len(pids) == count
	})
	return pids
}

func (n *node) config(c map[string]any) []byte {
	n.Helper()
	b, err := sdk.Encode(c)
	must.NoError(n, err)
	return b
}

// start starts a task and waits for its first line on stdout, which is "ready".
func (n *node) start(p *pluginProcess, c *pb.TaskConfig) *pb.TaskHandle {
	n.Helper()
	r, err := p.StartTask(n.Context(), &pb.StartTaskRequest{Task: c})
	must.NoError(n, err)
	n.until(func() bool { return strings.HasPrefix(n.stdout(c), "ready") })
	return r.GetHandle()
}

func (n *node) stdout(c *pb.TaskConfig) string {
	b, err := os.ReadFile(c.GetStdoutPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		must.NoError(n, err)
	}
	return string(b)
}

// until waits for a fact about other processes.
func (n *node) until(fact func() bool) {
	n.Helper()
	must.Wait(n, wait.InitialSuccess(wait.BoolFunc(fact), wait.Timeout(time.Minute), wait.Gap(2*time.Millisecond)))
}

func (n *node) recover(p *pluginProcess, handle *pb.TaskHandle) error {
	_, err := p.RecoverTask(n.Context(), &pb.RecoverTaskRequest{Handle: handle})
	return err
}

func (n *node) wait(p *pluginProcess, c *pb.TaskConfig) *pb.WaitTaskResponse {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), time.Minute)
	defer cancel()
	r, err := p.WaitTask(ctx, &pb.WaitTaskRequest{TaskId: c.GetId()})
	must.NoError(n, err)
	return r
}

func (n *node) inspect(p *pluginProcess, c *pb.TaskConfig) (*pb.InspectTaskResponse, error) {
	return p.InspectTask(n.Context(), &pb.InspectTaskRequest{TaskId: c.GetId()})
}

// pid returns an attribute of a task that is a pid.
func (n *node) pid(p *pluginProcess, c *pb.TaskConfig, attribute string) int {
	n.Helper()
	r, err := n.inspect(p, c)
	must.NoError(n, err)
	pid, err := strconv.Atoi(r.GetDriver().GetAttributes()[attribute])
	must.NoError(n, err)
	return pid
}

func (n *node) stop(p *pluginProcess, c *pb.TaskConfig, grace time.Duration, signal string) error {
	_, err := p.StopTask(n.Context(), &pb.StopTaskRequest{TaskId: c.GetId(), Timeout: durationpb.New(grace), Signal: signal})
	return err
}

func (n *node) destroy(p *pluginProcess, c *pb.TaskConfig) {
	n.Helper()
	_, err := p.DestroyTask(n.Context(), &pb.DestroyTaskRequest{TaskId: c.GetId(), Force: true})
	must.NoError(n, err)
}

// end destroys the last task, and checks that nothing is left.
func (n *node) end(p *pluginProcess, c *pb.TaskConfig) {
	n.Helper()
	n.destroy(p, c)
	n.empty()
}

// emptyIfAny is like empty, for a node on which perhaps no task was started.
func (n *node) emptyIfAny() {
	n.Helper()
	must.NoError(n, os.MkdirAll(n.shims(), 0o700))
	n.empty()
}

// empty checks that nothing is left of any task.
func (n *node) empty() {
	n.Helper()
	must.Eq(n, nil, n.processes())
	folders, err := os.ReadDir(n.shims())
	must.NoError(n, err)
	must.Len(n, 0, folders)
	groups, err := filepath.Glob("/sys/fs/cgroup/*/*/*/test-" + n.id + ".*")
	must.NoError(n, err)
	must.Eq(n, nil, groups)
}

// privateMemory returns the private memory of a process in KiB.
func (n *node) privateMemory(pid int) int {
	n.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	must.NoError(n, err)
	sum := 0
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); f[0] == "Private_Clean:" || f[0] == "Private_Dirty:" {
			kib, err := strconv.Atoi(f[1])
			must.NoError(n, err)
			sum += kib
		}
	}
	must.Positive(n, sum)
	return sum
}

func notFound(t *testing.T, err error) {
	t.Helper()
	must.Eq(t, "task not found for given id", status.Convert(err).Message())
}
