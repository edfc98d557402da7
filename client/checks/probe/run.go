package probe

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/client/checks"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Exec runs a command in the task of a script. The end of the context ends the command.
type Exec func(ctx context.Context, command []string, streams driver.ExecStreams) (driver.ExitResult, error)

// Run executes the check until its timeout or the end of the context.
func (t Target) Run(ctx context.Context, exec Exec) checks.Result {
	ctx, cancel := context.WithTimeout(ctx, t.check.Timeout)
	defer cancel()
	var r checks.Result
	var err error
	switch t.check.Type {
	case cluster.CheckHTTP:
		r, err = t.http(ctx)
	case cluster.CheckTCP:
		r, err = t.tcp(ctx)
	default:
		r, err = t.script(ctx, exec)
	}
	if err == nil {
		return r
	}
	if r.Outcome = checks.Failed; errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("the check has not ended in its timeout of %s: %w", t.check.Timeout, err)
	}
	if r.Output != "" {
		r.Output = "\n" + r.Output
	}
	r.Output = err.Error() + r.Output
	return r
}

// tcp passes when the connection is open.
func (t Target) tcp(ctx context.Context) (checks.Result, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.address)
	if err != nil {
		return checks.Result{}, err
	}
	_ = conn.Close() // the connection was open, which is all that the check needs
	return checks.Result{Outcome: checks.Passed, Output: "the port accepts connections"}, nil
}

// http sends one request on a connection of its own: a connection of an earlier run would pass although the task
// accepts no other. It uses no proxy.
func (t Target) http(ctx context.Context) (checks.Result, error) {
	scheme := "http://"
	if t.check.TLS {
		scheme = "https://"
	}
	r, err := http.NewRequestWithContext(ctx, cmp.Or(t.check.Method, http.MethodGet), scheme+t.address+t.path, strings.NewReader(t.body))
	if err != nil {
		return checks.Result{}, err
	}
	r.Header = t.header
	if r.Host = t.header.Get("Host"); r.Host == "" {
		r.Host = r.URL.Host
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", "nodedrain check")
	}
	transport := &http.Transport{
		DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.serverName, InsecureSkipVerify: t.check.SkipVerify},
	}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return checks.Result{}, err
	}
	defer answer.Body.Close()
	result := checks.Result{Outcome: checks.Passed, Code: answer.StatusCode, Output: "HTTP " + answer.Status}
	if answer.StatusCode < http.StatusOK || answer.StatusCode >= http.StatusMultipleChoices {
		body, _ := io.ReadAll(io.LimitReader(answer.Body, checks.MaxOutput)) // the status decides, not the body
		result.Outcome, result.Output = checks.Failed, result.Output+"\n"+string(body)
	}
	return result, nil
}

// script runs the command. The exit code 0 passes, and 1 is a warning.
func (t Target) script(ctx context.Context, exec Exec) (checks.Result, error) {
	output := &limited{}
	exit, err := exec(ctx, t.command, driver.ExecStreams{Stdout: output, Stderr: output})
	r := checks.Result{Output: output.String()}
	switch {
	case err == nil && ctx.Err() != nil:
		err = errors.New("the command was killed")
	case err != nil:
	case exit.Unknown:
		err = errors.New("the driver does not report how the command has ended")
	case exit.Signal != 0:
		err = fmt.Errorf("a signal has ended the command: %d", exit.Signal)
	case exit.Code == 0:
		r.Outcome = checks.Passed
	case exit.Code == 1:
		r.Outcome = checks.Warned
	default:
		r.Output = fmt.Sprintf("exit code %d\n%s", exit.Code, r.Output)
	}
	return r, err
}

// limited keeps the first [checks.MaxOutput] bytes that are written to it. It is safe for concurrent use.
type limited struct {
	mu   sync.Mutex
	kept []byte // guarded by mu
}

// Write implements [io.Writer]. It accepts everything, so that no command waits.
func (l *limited) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, p[:min(len(p), checks.MaxOutput-len(l.kept))]...)
	return len(p), nil
}

func (l *limited) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.kept)
}
