//race:skip one goroutine
package crash_test

import (
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/crash"
)

func TestFind(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		text  string
		line  string
		crash bool
	}{
		"nothing":    {"", "", false},
		"blank":      {"\n \n", "", false},
		"an error":   {"starting\nthe socket /run/x is missing\n\n", "the socket /run/x is missing", false},
		"a word":     {"don't panic: it is only a log line\n", "don't panic: it is only a log line", false},
		"a panic":    {"{\"@level\":\"info\"}\npanic: no health\n\ngoroutine 1 [running]:\nmain.main()\n\t/a/main.go:3 +0x1\nexit status 2\n", "panic: no health", true},
		"a C fault":  {"SIGSEGV: segmentation violation\nPC=0x0 m=0 sigcode=1\n\ngoroutine 1 [syscall]:\n\nfs     0x0\ngs     0x0\n", "SIGSEGV: segmentation violation", true},
		"the last":   {"panic: recovered\nserving again\nfatal error: concurrent map writes\n\ngoroutine 7 [running]:\n", "fatal error: concurrent map writes", true},
		"a nested":   {"panic: one [recovered]\n\tpanic: two\n\ngoroutine 1 [running]:\n", "panic: one [recovered]", true},
		"Rust":       {"thread 'main' panicked at src/main.rs:2:5:\nno health\nnote: run with `RUST_BACKTRACE=1`\n", "thread 'main' panicked at src/main.rs:2:5: no health", true},
		"newer Rust": {"\nthread 'main' (4242) panicked at src/main.rs:2:5:\nno health\nnote: run with\n", "thread 'main' (4242) panicked at src/main.rs:2:5: no health", true},
		"Java":       {"Exception in thread \"main\" java.lang.Error: no health\n\tat Main.main(Main.java:3)\n", `Exception in thread "main" java.lang.Error: no health`, true},
		"C++":        {"terminate called after throwing an instance of 'std::runtime_error'\n  what():  no health\n", "terminate called after throwing an instance of 'std::runtime_error' what():  no health", true},
		"Python":     {"Traceback (most recent call last):\n  File \"p.py\", line 1, in <module>\nValueError: no health\n", "ValueError: no health", false},
		"no end":     {"panic: cut", "panic: cut", true},
		"a long one": {strings.Repeat("x", 5000) + "\npanic: after it\n", "panic: after it", true},
		"only long":  {strings.Repeat("x", 5000), strings.Repeat("x", crash.MaxLine), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := crash.Find(strings.NewReader(story.text))
			must.Eq(t, story.line, r.Line)
			must.Eq(t, story.crash, r.Crash)
			must.StrHasPrefix(t, r.Line[:min(len(r.Line), 10)], story.text[r.Offset:])
		})
	}
}

// Any text has a line that is part of it.
func FuzzFind(f *testing.F) {
	f.Add("panic: a\n\ngoroutine 1 [running]:\n")
	f.Add("thread 'main' panicked at a:\nb\nterminate called after \n")
	f.Fuzz(func(t *testing.T, text string) {
		r := crash.Find(strings.NewReader(text))
		if r.Offset < 0 || r.Offset > int64(len(text)) || len(r.Line) > 2*crash.MaxLine+1 {
			t.Fatalf("%+v", r)
		}
	})
}
