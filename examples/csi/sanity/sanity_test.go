// Package sanity_test runs the conformance suite of CSI, csi-test's pkg/sanity, over the program of
// examples/csi in its strict mode: once over one program with both roles, and once over a controller
// and a node. It is a module of its own, because the suite brings modules that nothing else here needs.
package sanity_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
)

// skipped returns the specs that do not run: those that are about a capability that the plugin does not
// have. The file has the reasons, too.
func skipped(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/skipped.txt")
	if err != nil {
		t.Fatal(err)
	}
	var specs []string
	for line := range strings.Lines(string(text)) {
		if spec, ok := strings.CutPrefix(line, "- "); ok {
			specs = append(specs, strings.TrimSpace(spec))
		}
	}
	return specs
}

// setups are the plugins that the suite runs over.
func setups() []string { return []string{"one program", "a controller and a node"} }

func TestSanity(t *testing.T) {
	if err := mayMount(t.TempDir()); err != nil {
		t.Skipf("!!! NOT RUN: this user may not mount: %v", err)
	}
	dir, err := os.MkdirTemp("", "sanity") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, dir) })
	program := build(t, dir)
	var contexts []*sanity.TestContext
	for i, name := range setups() {
		own := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(own, 0o700); err != nil {
			t.Fatal(err)
		}
		config := sanity.NewTestConfig()
		config.TargetPath, config.StagingPath = filepath.Join(own, "targets"), filepath.Join(own, "staging")
		if i == 0 {
			config.Address = start(t, program, own, "monolith")
		} else {
			config.ControllerAddress, config.Address = start(t, program, own, "controller"), start(t, program, own, "node")
		}
		ginkgo.Describe(name, func() { contexts = append(contexts, sanity.GinkgoTest(&config)) })
		t.Cleanup(func() { checkLog(t, filepath.Join(own, "log")) })
	}
	var ended types.Report
	ginkgo.ReportAfterSuite("keep the report", func(r ginkgo.Report) { ended = r })
	gomega.RegisterFailHandler(ginkgo.Fail)
	suite, reporter := ginkgo.GinkgoConfiguration()
	reporter.Succinct, reporter.NoColor = true, true
	ginkgo.RunSpecs(t, "CSI", suite, reporter)
	for _, c := range contexts {
		c.Finalize()
	}
	checkSkipped(t, ended.SpecReports)
}

// checkSkipped compares the specs that did not run with the list.
func checkSkipped(t *testing.T, specs types.SpecReports) {
	t.Helper()
	expected := map[string]bool{}
	listed := skipped(t)
	for _, spec := range listed {
		for _, setup := range setups() {
			expected[setup+" "+spec] = true
		}
	}
	ran := 0
	var found []string
	for _, s := range specs.WithLeafNodeType(types.NodeTypeIt) {
		if s.State == types.SpecStatePassed {
			ran++
			continue
		}
		if !s.State.Is(types.SpecStateSkipped | types.SpecStatePending) {
			continue // it failed, as the test does
		}
		if expected[s.FullText()] {
			delete(expected, s.FullText())
			continue
		}
		found = append(found, fmt.Sprintf("%q is %s, and not in the list: %s", s.FullText(), s.State, s.Failure.Message))
	}
	for spec := range expected {
		found = append(found, fmt.Sprintf("%q is in the list, and was not skipped", spec))
	}
	slices.Sort(found)
	for _, f := range found {
		t.Error(f)
	}
	t.Logf("%d specs passed, %d are in the list of skipped ones", ran, len(listed)*len(setups()))
}

func build(t *testing.T, dir string) string {
	t.Helper()
	program := filepath.Join(dir, "csi")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", program, ".")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, out)
	}
	return program
}

// start starts a program of the plugin, and returns its address when it listens. The program ends with
// the test.
func start(t *testing.T, program, dir, role string) string {
	t.Helper()
	socket := filepath.Join(dir, role)
	cmd := exec.Command(program, "-type", role, "-endpoint", socket, "-root", filepath.Join(dir, "root"),
		"-node-id", "node", "-strict", filepath.Join(dir, "log"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the %s ended with %v", role, err)
		}
		if t.Failed() {
			_, _ = io.Copy(os.Stderr, &out)
		}
	})
	for begin := time.Now(); ; {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
			return "unix:" + socket
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("the %s does not listen: %v", role, err)
		}
	}
}

// checkLog checks that the suite, which calls in the right order, was never refused for the order.
func checkLog(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	calls := 0
	for lines := bufio.NewScanner(file); lines.Scan(); calls++ {
		var entry struct{ Verdict string }
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Verdict != "in order" && entry.Verdict != "invalid" {
			t.Error(lines.Text())
		}
	}
	if calls == 0 {
		t.Error("the strict mode logged no call")
	}
}

// mayMount returns an error if this user may not mount.
func mayMount(dir string) error {
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		return err
	}
	return syscall.Unmount(dir, 0)
}

// removeAll unmounts what a failed test left below a folder, and removes the folder.
func removeAll(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(text)))
	for _, line := range slices.Backward(lines) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			t.Errorf("%s is still mounted", fields[4])
			_ = syscall.Unmount(fields[4], syscall.MNT_DETACH)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}
