package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
)

// hunter finds bugs.
type hunter struct {
	root      string // the top of the repository
	overlay   string // with all bugs
	binary    string // command hunt with all bugs
	seeds     int
	scenarios []string
}

// newHunter builds command hunt with the bugs below dir.
func newHunter(ctx context.Context, root, dir string, seeds int, bugs []*planted.Bug) (*hunter, error) {
	h := &hunter{root: root, binary: filepath.Join(dir, "hunt"), seeds: seeds}
	var err error
	if h.overlay, err = planted.Plant(root, dir, bugs); err != nil {
		return nil, err
	}
	if h.scenarios, err = filepath.Glob(filepath.Join(root, "sim", "scenarios", "*.drain")); err != nil {
		return nil, err
	}
	output, failed, err := h.command(ctx, "", "go", "build", "-overlay", h.overlay, "-o", h.binary, "./sim/planted/hunt")
	if failed || err != nil {
		return nil, errors.Join(fmt.Errorf("building with the bugs: %s", output), err)
	}
	return h, nil
}

// find returns the bug's row.
func (h *hunter) find(ctx context.Context, b *planted.Bug) (row planted.Row, err error) {
	if row, err = h.bySimulation(ctx, b.Name); row.Found == "" && err == nil {
		row.Found, err = h.byTest(ctx, b)
	}
	if row.Found == "" && err == nil {
		err = fmt.Errorf("%d seeds, the scenarios and the tests pass", h.seeds)
	}
	row.Bug, row.Breaks = b.Name, b.Breaks
	return row, err
}

// command runs a command with a bug at the top of the repository, and reports whether it exits
// with a failure.
func (h *hunter) command(ctx context.Context, bug, name string, args ...string) (output []byte, failed bool, err error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = h.root, append(os.Environ(), planted.Variable+"="+bug)
	output, err = c.CombinedOutput()
	var exit *exec.ExitError
	if ctx.Err() == nil && errors.As(err, &exit) {
		return output, true, nil
	}
	return output, false, err
}

// again reports whether the seed, the scenario or the test of the row still finds the bug, and returns the
// row with the check that fails now.
func (h *hunter) again(ctx context.Context, b *planted.Bug, row planted.Row) (now planted.Row, found bool, err error) {
	kind, name, _ := strings.Cut(row.Found, " ")
	switch kind {
	case "seed":
		now, err = h.play(ctx, b.Name, "-seeds", "1", "-first", name)
	case "scenario":
		now, err = h.play(ctx, b.Name, h.scenario(name))
	case "test":
		_, test, _ := strings.Cut(name, ".")
		now.Found, err = h.byTest(ctx, b, "-run", "^"+test+"$")
	}
	now.Bug, now.Breaks = b.Name, b.Breaks
	return now, row.Found != "" && now.Found == row.Found, err
}

func (h *hunter) scenario(name string) string {
	return filepath.Join(h.root, "sim", "scenarios", name+".drain")
}

// bySimulation plays seeds and scenarios. It returns an error if the one that fails also fails
// without a bug.
func (h *hunter) bySimulation(ctx context.Context, bug string) (row planted.Row, err error) {
	row, err = h.play(ctx, bug, slices.Concat([]string{"-seeds", strconv.Itoa(h.seeds)}, h.scenarios)...)
	if err != nil || row.Found == "" {
		return row, err
	}
	args := []string{"-seeds", "1", "-first"}
	kind, name, _ := strings.Cut(row.Found, " ")
	if kind == "scenario" {
		args, name = nil, h.scenario(name)
	}
	control, err := h.play(ctx, "", append(args, name)...)
	if control.Found != "" {
		err = fmt.Errorf("%s fails without the bug too: %s", row.Found, control.Check)
	}
	return row, err
}

// play runs command hunt.
func (h *hunter) play(ctx context.Context, bug string, args ...string) (row planted.Row, err error) {
	output, failed, err := h.command(ctx, bug, h.binary, args...)
	if failed || err != nil {
		return row, errors.Join(fmt.Errorf("playing: %s", output), err)
	}
	return row, json.Unmarshal(output, &row)
}

// simulatedNode is the folder of the tests that play one node with the real client.
const simulatedNode = "./sim/internal/machine"

// byTest runs the tests of the changed packages and of the drainer, and those of a simulated node first if
// the client is changed. flags are further flags of go test.
func (h *hunter) byTest(ctx context.Context, b *planted.Bug, flags ...string) (found string, err error) {
	// The cache of go test does not see that the variable has changed.
	args := append([]string{"test", "-count=1", "-overlay", h.overlay, "-failfast", "-p", "1"}, flags...)
	if slices.ContainsFunc(b.Edits, func(e planted.Edit) bool { return e.Folder == "client" || strings.HasPrefix(e.Folder, "client/") }) {
		args = append(args, simulatedNode)
	}
	for _, e := range b.Edits {
		args = append(args, "./"+e.Folder)
	}
	output, failed, err := h.command(ctx, b.Name, "go", append(args, "./drainer/...")...)
	if !failed || err != nil {
		return "", err
	}
	test := failedTest(string(output))
	if test == "" {
		return "", fmt.Errorf("go test names no failed test:\n%s", output)
	}
	return planted.TestPrefix + test, nil
}

// failedTest returns the first test that failed in the output of go test, with its package's
// name, or the empty string.
func failedTest(output string) string {
	test := ""
	for _, match := range regexp.MustCompile(`(?m)^--- FAIL: (\S+)|^FAIL\t\S*?([^/\s]+)\t[0-9.]+s$`).FindAllStringSubmatch(output, -1) {
		switch {
		case test == "":
			test = match[1]
		case match[2] != "":
			return match[2] + "." + test
		}
	}
	return ""
}
