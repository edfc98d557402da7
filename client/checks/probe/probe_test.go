package probe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/checks"
	"github.com/seed-f9cf0b39/nodedrain/client/checks/probe"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// interpolate replaces ${x} by the word value.
func interpolate(text string) (string, error) {
	if strings.Contains(text, "${unknown}") {
		return "", errors.New("there is no variable ${unknown}")
	}
	return strings.ReplaceAll(text, "${x}", "value"), nil
}

func definition(s cluster.Service, c cluster.ServiceCheck) checks.Definition {
	c.Timeout = max(c.Timeout, 10*time.Second)
	return checks.Definition{Key: checks.Key{Owner: "web"}, Task: "web", Service: &s, Check: &c}
}

// run executes a check of a port on the loopback interface.
func run(t *testing.T, address string, c cluster.ServiceCheck) checks.Result {
	_, port, err := net.SplitHostPort(address)
	must.NoError(t, err)
	target, err := probe.Resolve(definition(cluster.Service{PortLabel: port}, c), nil, "127.0.0.1", interpolate)
	must.NoError(t, err)
	return target.Run(t.Context(), nil)
}

// The target of an HTTP check gets everything that the job states, with its variables replaced.
func TestHTTP_request(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		seen <- fmt.Sprint(r.Method, " ", r.Host, r.URL, " ", r.Header["X-A"], r.Header.Get("User-Agent"), " ", string(body), " ", err)
	}))
	defer s.Close()
	r := run(t, s.Listener.Addr().String(), cluster.ServiceCheck{
		Type: cluster.CheckHTTP, Method: "PUT", Path: "/a/${x}?b=c", Body: "body ${x}",
		Headers: map[string][]string{"X-A": {"1", "${x}"}, "host": {"web.example"}},
	})
	must.Eq(t, checks.Result{Outcome: checks.Passed, Code: 200, Output: "HTTP 200 OK"}, r)
	must.EqOp(t, "PUT web.example/a/value?b=c [1 value]nodedrain check body value <nil>", <-seen)
}

// Only a status from 200 to 299 passes, after redirects. The output has a part of the body.
func TestHTTP_status(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			return
		}
		w.Header().Set("Location", "/end")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(strings.Repeat("y", 1<<20)))
	}))
	defer s.Close()
	for status, code := range map[int]int{201: 201, 302: 200, 404: 404, 429: 429, 503: 503} {
		r := run(t, s.Listener.Addr().String(), cluster.ServiceCheck{Type: cluster.CheckHTTP, Path: fmt.Sprint("/", status)})
		must.EqOp(t, code, r.Code)
		must.EqOp(t, code < 300, r.Outcome == checks.Passed)
		must.StrHasPrefix(t, fmt.Sprint("HTTP ", code), r.Output)
		must.LessEq(t, checks.MaxOutput+100, len(r.Output))
		must.EqOp(t, code >= 300, strings.Contains(r.Output, "yyy"))
	}
}

func TestHTTP_tls(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	c := cluster.ServiceCheck{Type: cluster.CheckHTTP, Path: "/", TLS: true}
	r := run(t, s.Listener.Addr().String(), c)
	must.EqOp(t, checks.Failed, r.Outcome)
	must.StrContains(t, r.Output, "certificate")
	c.SkipVerify = true
	must.EqOp(t, checks.Passed, run(t, s.Listener.Addr().String(), c).Outcome)
	c.TLS = false
	must.EqOp(t, 400, run(t, s.Listener.Addr().String(), c).Code)
}

// Each run opens a connection. A task that accepts no more connections must not pass on an earlier one.
func TestHTTP_newConnections(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	for range 3 {
		must.EqOp(t, checks.Passed, run(t, s.Listener.Addr().String(), cluster.ServiceCheck{Type: cluster.CheckHTTP, Path: "/"}).Outcome)
	}
	must.EqOp(t, 3, opened.Load())
}

// A target that accepts and does not answer fails at the timeout.
func TestRun_timeout(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.NoError(t, err)
	defer l.Close()
	d := definition(cluster.Service{PortLabel: fmt.Sprint(l.Addr().(*net.TCPAddr).Port)}, cluster.ServiceCheck{Type: cluster.CheckHTTP, Path: "/"})
	d.Check.Timeout = 50 * time.Millisecond
	target, err := probe.Resolve(d, nil, "127.0.0.1", interpolate)
	must.NoError(t, err)
	r := target.Run(t.Context(), nil)
	must.EqOp(t, checks.Failed, r.Outcome)
	must.StrContains(t, r.Output, "timeout of 50ms")
	must.EqOp(t, checks.Passed, run(t, l.Addr().String(), cluster.ServiceCheck{Type: cluster.CheckTCP}).Outcome)
	must.StrContains(t, run(t, "127.0.0.1:1", cluster.ServiceCheck{Type: cluster.CheckTCP}).Output, "refused")
}

func TestScript(t *testing.T) {
	t.Parallel()
	d := definition(cluster.Service{}, cluster.ServiceCheck{Type: cluster.CheckScript, Command: "cmd", Args: []string{"-a", "${x}"}})
	target, err := probe.Resolve(d, nil, "", interpolate)
	must.NoError(t, err)
	for name, c := range map[string]struct {
		exit driver.ExitResult
		err  error
		want checks.Result
	}{
		"passes":  {want: checks.Result{Outcome: checks.Passed, Output: "outerr"}},
		"warns":   {exit: driver.ExitResult{Code: 1}, want: checks.Result{Outcome: checks.Warned, Output: "outerr"}},
		"fails":   {exit: driver.ExitResult{Code: 2}, want: checks.Result{Output: "exit code 2\nouterr"}},
		"signal":  {exit: driver.ExitResult{Signal: 9}, want: checks.Result{Output: "a signal has ended the command: 9\nouterr"}},
		"unknown": {exit: driver.ExitResult{Unknown: true}, want: checks.Result{Output: "the driver does not report how the command has ended\nouterr"}},
		"error":   {err: errors.New("no such file"), want: checks.Result{Output: "no such file\nouterr"}},
	} {
		r := target.Run(t.Context(), func(_ context.Context, command []string, s driver.ExecStreams) (driver.ExitResult, error) {
			must.Eq(t, []string{"cmd", "-a", "value"}, command)
			must.False(t, s.TTY)
			_, _ = s.Stdout.Write([]byte("out"))
			_, _ = s.Stderr.Write([]byte("err"))
			return c.exit, c.err
		})
		must.Eq(t, c.want, r, must.Sprint(name))
	}
	r := target.Run(t.Context(), func(_ context.Context, _ []string, s driver.ExecStreams) (driver.ExitResult, error) {
		for range 1000 {
			n, err := s.Stdout.Write(make([]byte, 1000))
			must.EqOp(t, 1000, n)
			must.NoError(t, err)
		}
		return driver.ExitResult{}, nil
	})
	must.EqOp(t, checks.MaxOutput, len(r.Output))
}

// A check has the port of its task before that of the group, and the address of the check before that of the service.
func TestResolve(t *testing.T) {
	t.Parallel()
	ports := &cluster.AssignedPorts{IP: "10.0.0.1", All: []cluster.AssignedPort{
		{Label: "http", Number: 1}, {Task: "web", Label: "http", Number: 2}, {Task: "other", Label: "http", Number: 3}, {Label: "admin", Number: 4, To: 80}, {Label: "6", Number: 7},
	}}
	for want, c := range map[string]struct {
		service cluster.Service
		check   cluster.ServiceCheck
	}{
		"dial tcp 10.0.0.1:2": {service: cluster.Service{PortLabel: "http"}},
		"dial tcp 10.0.0.1:4": {service: cluster.Service{PortLabel: "http"}, check: cluster.ServiceCheck{PortLabel: "admin"}},
		"dial tcp 10.0.0.1:7": {service: cluster.Service{PortLabel: "6"}},
		"dial tcp 10.0.0.9:5": {service: cluster.Service{PortLabel: "5"}},
		"dial tcp [::1]:2":    {service: cluster.Service{PortLabel: "http", Address: "${x}"}, check: cluster.ServiceCheck{Address: "::1"}},
		"lookup value":        {service: cluster.Service{PortLabel: "http", Address: "${x}"}},
	} {
		c.check.Type = cluster.CheckTCP
		target, err := probe.Resolve(definition(c.service, c.check), ports, "10.0.0.9", interpolate)
		must.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		must.StrContains(t, target.Run(ctx, nil).Output, want)
	}
	_, err := probe.Resolve(definition(cluster.Service{PortLabel: "none"}, cluster.ServiceCheck{Type: cluster.CheckTCP}), ports, "", interpolate)
	must.EqError(t, err, `the allocation has no port with the label "none"`)
	_, err = probe.Resolve(definition(cluster.Service{PortLabel: "http"}, cluster.ServiceCheck{Type: cluster.CheckHTTP, Path: "/${unknown}"}), ports, "", interpolate)
	must.EqError(t, err, "there is no variable ${unknown}")
}
