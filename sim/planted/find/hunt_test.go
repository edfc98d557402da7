//race:skip one goroutine
package main

import (
	"testing"

	"github.com/shoenig/test/must"
)

func TestFailedTest(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"ok  \tm/a\t0.1s\n": "",
		"ok  \tm/a\t0.1s\n--- FAIL: TestX (0.00s)\n    x_test.go:1: no\nFAIL\nFAIL\tm/b\t0.2s\nFAIL\n":                    "b.TestX",
		"--- FAIL: TestX (0.00s)\n    --- FAIL: TestX/one (0.00s)\n--- FAIL: TestY (0.00s)\nFAIL\nFAIL\tm/b/c\t12.203s\n": "c.TestX",
		"# m/b\nb.go:1: undefined: x\nFAIL\tm/b [build failed]\nFAIL\n":                                                   "", // nothing about the bug
	} {
		must.Eq(t, want, failedTest(output), must.Sprint(output))
	}
}
