package planted

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Survey finds out which bugs the ordinary tests find: all but those of the
// simulator. It works in a copy of the repository, because tests leave files
// behind when they fail, and source checks read what is there and no overlay.
type Survey struct {
	// Parts are the arguments of go test, run one after the other until a test fails.
	// What is fast comes first, since most bugs end there. Nil is all that there is
	// outside sim.
	Parts [][]string
	root  string // the copy
}

// NewSurvey copies the repository below root into an empty folder.
func NewSurvey(root, dir string) (*Survey, error) {
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		relative, _ := filepath.Rel(root, name)
		to := filepath.Join(dir, relative)
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(to, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o600)
	})
	if err != nil {
		return nil, fmt.Errorf("copying the repository: %w", err)
	}
	return &Survey{root: dir}, nil
}

// ordinary are the packages with tests that are none of the simulator's: first those
// that find most bugs at the least expense, in the end the others.
func ordinary(ctx context.Context, root string) ([][]string, error) {
	const cases, huge = "./cases", "TestCases/30-ten-thousand|TestScale"
	cheap := []string{"./cluster/...", "./drainer/...", "./statestore", "./shims", "./scheduler", "./simclient", "./witness/..."}
	list, err := packagesOf(ctx, root, "work")
	if err != nil {
		return nil, err
	}
	earlier, err := packagesOf(ctx, root, slices.Concat(cheap, []string{cases, "./sim/..."})...)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(list, func(p string) bool { return slices.Contains(earlier, p) })
	return [][]string{cheap, {"-skip", huge, cases}, {"-run", huge, cases}, others}, nil
}

// packagesOf are the import paths of some packages.
func packagesOf(ctx context.Context, root string, patterns ...string) ([]string, error) {
	list := exec.CommandContext(ctx, "go", append([]string{"list"}, patterns...)...)
	list.Dir = root
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	return strings.Fields(string(output)), nil
}

// Try plants the bug in the copy, runs the tests until one fails twice, and takes
// the bug out again. It returns the test, or [Survives].
func (s *Survey) Try(ctx context.Context, b *Bug) (test string, err error) {
	changed, err := b.Apply(SourceIn(s.root))
	if err != nil {
		return "", err
	}
	if s.Parts == nil {
		if s.Parts, err = ordinary(ctx, s.root); err != nil {
			return "", err
		}
	}
	restore, err := s.write(changed)
	defer func() { err = errors.Join(err, restore()) }()
	if err != nil {
		return "", err
	}
	for _, args := range s.Parts {
		if test, err = s.confirm(ctx, args); test != "" || err != nil {
			return test, err
		}
	}
	return Survives, nil
}

// attempts is how often tests are run until they pass, or one fails twice in a row.
const attempts = 4

// confirm runs some tests and returns the first that fails twice in a row, or nothing
// if all pass in the end: on a busy machine a test of servers may fail that no bug had
// a part in. What has passed the go command remembers, and does not run again.
func (s *Survey) confirm(ctx context.Context, args []string) (test string, err error) {
	var failed []string
	for range attempts {
		test, err = s.run(ctx, args)
		if again := len(failed) > 0 && test == failed[len(failed)-1]; test == "" || again || err != nil {
			return test, err
		}
		failed = append(failed, test)
	}
	return "", fmt.Errorf("no test fails twice in a row, each of %s once: try again on a machine that is less busy", strings.Join(failed, ", "))
}

// write puts files in the place of those in the copy, and returns what puts
// them back.
func (s *Survey) write(files map[string]string) (restore func() error, err error) {
	before := map[string]string{}
	restore = func() (err error) {
		for file, text := range before {
			err = errors.Join(err, os.WriteFile(filepath.Join(s.root, file), []byte(text), 0o600))
		}
		return err
	}
	for file, text := range files {
		old, err := SourceIn(s.root)(file)
		if err != nil {
			return restore, err
		}
		before[file] = old
		if err := os.WriteFile(filepath.Join(s.root, file), []byte(text), 0o600); err != nil {
			return restore, err
		}
	}
	return restore, nil
}

// run runs some tests and returns the first that fails, or nothing.
func (s *Survey) run(ctx context.Context, args []string) (test string, err error) {
	run := exec.CommandContext(ctx, "go", append([]string{"test", "-failfast", "-p", "1", "-timeout", "20m"}, args...)...)
	run.Dir = s.root
	output, err := run.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case ctx.Err() != nil || !errors.As(err, &exit):
		return "", fmt.Errorf("running tests: %w", errors.Join(ctx.Err(), err))
	}
	if test = failedTest(string(output)); test == "" {
		return "", fmt.Errorf("go test says nothing of a failed test:\n%s", bytes.TrimSpace(output))
	}
	return test, nil
}

// failedTest finds the first test that failed in what go test says, and its
// package: the line of the package comes after those of its tests. A package that
// does not build is no answer.
func failedTest(output string) string {
	failed := regexp.MustCompile(`(?m)^--- FAIL: (\S+)|^(panic: .*)|^FAIL\t(\S+)\t[0-9.]+s$`)
	test := ""
	for _, found := range failed.FindAllStringSubmatch(output, -1) {
		switch {
		case found[3] != "" && test != "":
			return found[3][strings.LastIndex(found[3], "/")+1:] + "." + test
		case found[3] != "":
			return found[3][strings.LastIndex(found[3], "/")+1:]
		case test == "":
			test = found[1] + found[2]
		}
	}
	return ""
}
