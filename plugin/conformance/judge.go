package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
)

// Outcome is how a test of the suite ended.
type Outcome string

// The values of [Outcome].
const (
	Passed Outcome = "passed"
	Failed Outcome = "failed"
	// Warned: the test failed, and its rule is a should.
	Warned  Outcome = "warning"
	Skipped Outcome = "skipped"
)

// Finding is what [Judge] found with one test.
type Finding struct {
	Rule    Rule
	Outcome Outcome
	// Why is the reason of a skip.
	Why string
	// Failures are those of a test that failed or warned. There is at least one.
	Failures []Failure
	// Calls are the calls of the test in their order, with their answers.
	Calls []string
	// Log is the end of the plugin's log.
	Log string
}

// atOnce is how many tests run at the same time.
const atOnce = 4

// Judge runs tests outside of go test. Skips are as in [Run]. It calls report with a finding for each
// test, in the order of the tests, from one goroutine. When ctx ends, calls in flight end, and the tests
// that remain fail.
func Judge(ctx context.Context, tests []Test, skips map[string]string, report func(Finding)) {
	findings, next := make([]chan Finding, len(tests)), make(chan int, len(tests))
	for i := range tests {
		findings[i] = make(chan Finding, 1)
		next <- i
	}
	close(next)
	for range atOnce { // each ends with the last test, whose finding the loop below takes
		go func() {
			for i := range next {
				findings[i] <- judge(ctx, tests[i], skips, nil)
			}
		}()
	}
	for _, finding := range findings {
		report(<-finding)
	}
}

// judge runs one test. Log gets the lines of the test, or is nil.
func judge(ctx context.Context, one Test, skips map[string]string, log func(string, ...any)) Finding {
	if why, is := skips[one.ID]; is {
		return Finding{Rule: one.Rule, Outcome: Skipped, Why: why}
	}
	t, calls := newRecorder(ctx), &Trace{}
	t.log = log
	apart(func() { one.Run(t, calls) })
	t.end()
	f := Finding{Rule: one.Rule, Outcome: Passed, Failures: t.found(), Calls: calls.lines(), Log: calls.logged()}
	if len(f.Failures) > 0 {
		f.Outcome = Failed
		if one.warns(f.Failures...) {
			f.Outcome = Warned
		}
	}
	return f
}

// Probe calls start, which begins something that ends with the test, and ends it. Its error is the first
// failure.
func Probe(ctx context.Context, start func(T)) error {
	t := newRecorder(ctx)
	apart(func() { start(t) })
	t.end()
	if failures := t.found(); len(failures) > 0 {
		return errors.New(failures[0].Happened)
	}
	return nil
}

// apart calls a function in a goroutine of its own, which Fatalf may end, and waits for it.
func apart(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
}

// recorder is a T without go test.
type recorder struct {
	ctx    context.Context
	cancel context.CancelFunc
	log    func(string, ...any) // or nil

	mu       sync.Mutex
	failures []Failure // guarded by mu
	cleanups []func()  // guarded by mu
}

var _ T = (*recorder)(nil)

func newRecorder(ctx context.Context) *recorder {
	ctx, cancel := context.WithCancel(ctx)
	return &recorder{ctx: ctx, cancel: cancel}
}

// end does what go test does at the end of a test.
func (r *recorder) end() {
	r.cancel()
	for do := r.last(); do != nil; do = r.last() {
		apart(do)
	}
}

// last takes the last cleanup, or nil.
func (r *recorder) last() func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.cleanups) - 1
	if n < 0 {
		return nil
	}
	do := r.cleanups[n]
	r.cleanups = r.cleanups[:n]
	return do
}

// found returns the failures.
func (r *recorder) found() []Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.failures)
}

func (*recorder) Helper()                    {}
func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) Logf(format string, args ...any) {
	if r.log != nil {
		r.log(format, args...)
	}
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(args) == 1 {
		if failure, is := args[0].(Failure); is {
			r.failures = append(r.failures, failure)
			return
		}
	}
	r.failures = append(r.failures, Failure{Happened: fmt.Sprintf(format, args...)})
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Cleanup(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, do)
}

func (r *recorder) TempDir() string {
	dir, err := os.MkdirTemp("", "nd")
	if err != nil {
		r.Fatalf("making a folder: %v", err)
	}
	r.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
