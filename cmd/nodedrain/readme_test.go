package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// The README's commands work as written, line by line.
func TestReadme_operators(t *testing.T) {
	t.Parallel()
	ctx, c := startScriptCluster(t)
	lines := readmeLines(t, "<!-- operators -->")
	must.Positive(t, len(lines))
	for _, line := range lines {
		args := words(line)
		must.Eq(t, "nodedrain", args[0])
		var out strings.Builder
		code, errs := runAt(ctx, c.api.Address(), strings.NewReader(""), &out, args[1:]...)
		must.Zero(t, code, must.Sprintf("%s\n%s%s", line, &out, errs))
		must.NotEq(t, "", out.String())
	}
}

// The job in docs/operators.md runs.
func TestOperatorsGuide_job(t *testing.T) {
	t.Parallel()
	ctx, c := startScriptCluster(t)
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operators.md"))
	must.NoError(t, err)
	_, below, found := strings.Cut(string(text), "<!-- job -->\n```json\n")
	must.True(t, found)
	body, _, _ := strings.Cut(below, "\n```")
	code, out, errs := commandAt(ctx, c.api.Address(), body, "job run -")
	must.Zero(t, code, must.Sprint(out, errs))
	must.Eq(t, "", errs)
}

// readmeLines returns the lines of the code block below a mark.
func readmeLines(t *testing.T, mark string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	must.NoError(t, err)
	_, below, found := strings.Cut(string(text), mark+"\n```sh\n")
	must.True(t, found)
	block, _, found := strings.Cut(below, "\n```")
	must.True(t, found)
	return strings.Split(block, "\n")
}

// words splits a line like a shell, as far as the README needs it.
func words(line string) (args []string) {
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			args = append(args, part)
			continue
		}
		args = append(args, strings.Fields(part)...)
	}
	return args
}
