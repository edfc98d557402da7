package cli

import (
	"context"
	"errors"
	"io"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// A monitor retries while the servers have no leader. A refused read, or a long time without an
// answer to any read, ends it.
func TestRetry(t *testing.T) {
	t.Parallel()
	unavailable := &client.Error{Status: 500, Body: "No cluster leader"}
	undecoded := &client.UndecodedError{Err: io.EOF}
	refused := &client.Error{Status: 404, Body: "node not found"}
	for name, test := range map[string]struct {
		// waits is how long the first read waits before it fails, and failing how long reads fail after
		// that. Another read is answered after other, unless that is zero.
		waits, failing, other time.Duration
		err, want             error
		took                  time.Duration
	}{
		"at once":                   {},
		"a new leader":              {failing: 10 * time.Second, err: unavailable, took: 10 * time.Second},
		"a page of a proxy":         {failing: time.Hour, err: undecoded, want: undecoded, took: MonitorPatience + client.Pause},
		"no connection":             {failing: 10 * time.Second, err: io.ErrUnexpectedEOF, took: 10 * time.Second},
		"out for long":              {failing: time.Hour, err: unavailable, want: unavailable, took: MonitorPatience + client.Pause},
		"another read is answered":  {failing: time.Hour, other: time.Minute, err: unavailable, want: unavailable, took: time.Minute + MonitorPatience + client.Pause},
		"refused":                   {failing: time.Hour, err: refused, want: refused},
		"just long enough":          {failing: MonitorPatience, err: unavailable, took: MonitorPatience},
		"out after a healthy wait":  {waits: time.Minute, failing: time.Minute, other: time.Minute, err: unavailable, took: 2 * time.Minute},
		"the second of two outages": {waits: MonitorPatience, other: MonitorPatience, failing: MonitorPatience, err: unavailable, took: 2 * MonitorPatience},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				c := Contact{Patience: MonitorPatience}
				c.Answered()
				if test.other > 0 {
					time.AfterFunc(test.other, c.Answered)
				}
				first := true
				got, _, err := Retry(t.Context(), &c, func() (string, client.Answer, error) {
					if first {
						first = false
						time.Sleep(test.waits)
						synctest.Wait()
					}
					if time.Since(start) < test.waits+test.failing {
						return "", client.Answer{}, test.err
					}
					return "answer", client.Answer{}, nil
				})
				must.Eq(t, test.took, time.Since(start))
				must.ErrorIs(t, err, test.want)
				if test.want == nil {
					must.Eq(t, "answer", got)
				}
			})
		})
	}
}

func TestRetry_interrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		c := Contact{Patience: MonitorPatience}
		c.Answered()
		_, _, err := Retry(ctx, &c, func() (string, client.Answer, error) { return "", client.Answer{}, errors.New("down") })
		must.EqError(t, err, "down")
		must.Eq(t, time.Second, time.Since(start))
	})
}

// A server that has just started shows an older state, or no node at all. The monitor follows the
// leader.
func TestFollowing(t *testing.T) {
	t.Parallel()
	waiting := client.Query{Index: 7, Wait: time.Second, Stale: true}
	notFound := &client.Error{Status: 404, Body: "node not found"}
	for name, test := range map[string]struct {
		index  uint64
		answer uint64
		err    error
		want   []client.Query
	}{
		"the first read":           {0, 7, nil, []client.Query{{}}},
		"newer":                    {7, 8, nil, []client.Query{waiting}},
		"no newer":                 {7, 7, nil, []client.Query{waiting}},
		"an older state":           {7, 6, nil, []client.Query{waiting, {}}},
		"a state without the node": {7, 0, notFound, []client.Query{waiting, {}}},
		"no answer":                {7, 0, io.ErrUnexpectedEOF, []client.Query{waiting}},
	} {
		var queries []client.Query
		_, _, err := Following(test.index, time.Second, func(q client.Query) (string, client.Answer, error) {
			queries = append(queries, q)
			return "", client.Answer{Index: test.answer}, test.err
		})()
		must.ErrorIs(t, err, test.err)
		must.Eq(t, test.want, queries, must.Sprint(name))
	}
}

// A first contact that fails names its reason. A wrong CA once was a lost connection.
func TestMovedText(t *testing.T) {
	t.Parallel()
	wrong := &url.Error{Op: "Get", URL: "https://s0:1/v1/nodes", Err: errors.New("tls: failed to verify certificate: x509: certificate signed by unknown authority")}
	for want, m := range map[string]client.Move{
		"no connection to s0:1 (tls: failed to verify certificate: x509: certificate signed by unknown authority), trying s1:1": {
			From: "https://s0:1", To: "https://s1:1", First: true, Err: wrong},
		"no connection to s0:1 (unexpected EOF), trying s0:1 again": {From: "https://s0:1", To: "https://s0:1", First: true, Err: io.ErrUnexpectedEOF},
		"connection lost, trying s1:1":                              {From: "https://s0:1", To: "https://s1:1", Err: wrong},
		"s0:1 answers with text that is not the expected JSON (invalid character '<'), trying s1:1": {
			From: "https://s0:1", To: "https://s1:1", First: true, Err: &client.UndecodedError{Err: errors.New("invalid character '<'")}},
	} {
		must.Eq(t, want, movedText(m))
	}
}

// An outage of all servers prints each address once, and its end.
func TestOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o Outage
		to := func(address string) string {
			return o.Moved(client.Move{From: "http://s0", To: "http://" + address}, 10*time.Minute)
		}
		settle := func() string { time.Sleep(settling); return o.Answered() }
		must.Eq(t, "connection lost, trying s1", to("s1"))
		must.Eq(t, "", settle())
		must.Eq(t, "connection lost, trying s2", to("s2"))
		must.Eq(t, "connection lost, trying s1", to("s1"))
		must.Eq(t, "", to("s2"))
		time.Sleep(settling)
		must.Eq(t, "no server answers, retrying for 10m0s", to("s1"))
		must.Eq(t, "", to("s2"))
		must.Eq(t, "a server answers again", o.Answered())
		must.Eq(t, "", settle())
		must.Eq(t, "connection lost, trying s0 again", to("s0"))
	})
}

// The servers restart one after another, and then all of them are silent. Bug: the watch did not print the
// silence, because servers had answered since the first lost connection.
func TestOutage_silenceAfterARollingRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o Outage
		to := func(address string) string {
			return o.Moved(client.Move{From: "http://s0", To: "http://" + address}, 10*time.Minute)
		}
		for _, address := range []string{"s1", "s2", "s0"} {
			must.StrContains(t, to(address), "connection lost, trying s")
			time.Sleep(time.Second)
			must.Eq(t, "", o.Answered())
		}
		time.Sleep(time.Second)
		must.StrHasPrefix(t, "some requests are not answered", to("s1"))
		for _, address := range []string{"s2", "s0"} {
			time.Sleep(settling)
			must.Eq(t, "", to(address))
		}
		must.Eq(t, "no server answers, retrying for 10m0s", to("s1"))
		must.Eq(t, "a server answers again", o.Answered())
		time.Sleep(settling)
		must.Eq(t, "all requests are answered again", o.Answered())
	})
}

// Servers without a leader answer some requests, and the connections of others are lost. Bug: each answer ended
// the outage, so each lost connection was a line: two in a second.
func TestOutage_withoutALeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o Outage
		var lines []string
		add := func(line string) {
			if line != "" {
				lines = append(lines, line)
			}
		}
		for i := range 60 {
			add(o.Moved(client.Move{From: "http://s0", To: "http://s" + string(rune('0'+i%3))}, 10*time.Minute))
			add(o.Answered())
			time.Sleep(500 * time.Millisecond)
		}
		add(o.Answered())
		time.Sleep(settling)
		add(o.Answered())
		must.Eq(t, []string{
			"connection lost, trying s0 again", "connection lost, trying s1", "connection lost, trying s2",
			"some requests are not answered: the servers may have no leader; retrying for 10m0s", "all requests are answered again",
		}, lines)
	})
}

// Bug: the watch repeated a read for ten minutes without a line while a proxy answered it with a page. Each address
// that does so is printed once, also if its connection was lost before.
func TestOutage_undecodedAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o Outage
		page := &client.UndecodedError{Err: errors.New("invalid character '<'")}
		moved := func(from, to string, err error) string {
			return o.Moved(client.Move{From: "http://" + from, To: "http://" + to, Err: err}, 10*time.Minute)
		}
		o.Answered()
		must.Eq(t, "connection lost, trying s1", moved("s0", "s1", io.ErrUnexpectedEOF))
		must.Eq(t, "s1 answers with text that is not the expected JSON (invalid character '<'), trying s0", moved("s1", "s0", page))
		must.Eq(t, "s0 answers with text that is not the expected JSON (invalid character '<'), trying s1", moved("s0", "s1", page))
		time.Sleep(time.Second)
		must.Eq(t, "", o.Answered())
		must.Eq(t, "", moved("s1", "s0", page), must.Sprint("the servers may have a leader"))
		must.Eq(t, "", moved("s0", "s1", page))
		time.Sleep(settling)
		must.Eq(t, "no server answers, retrying for 10m0s", moved("s1", "s0", page))
		must.Eq(t, "a server answers again", o.Answered())
		time.Sleep(settling)
		must.Eq(t, "", o.Answered())
		must.Eq(t, "s0 answers with text that is not the expected JSON (invalid character '<'), trying s1", moved("s0", "s1", page))
	})
}

// All servers run, and none has a leader. Bug: no connection is lost then, so the watch printed nothing while the drain
// stood still.
func TestOutage_noLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o Outage
		must.Eq(t, "some requests are not answered: the servers may have no leader; retrying for 10m0s", o.Leaderless("", 10*time.Minute))
		for range 3 {
			time.Sleep(settling)
			must.Eq(t, "", o.Answered())
			must.Eq(t, "", o.Leaderless("", 10*time.Minute))
		}
		o.Led()
		must.Eq(t, "all requests are answered again", o.Answered())
		must.Eq(t, "", o.Answered())
	})
}

// A server without a leader has the reason. Bug: the watch printed only that the servers may have no leader.
func TestOutage_whyNoLeader(t *testing.T) {
	t.Parallel()
	const full = "server s1 cannot write its log: no space left on device"
	var o Outage
	must.Eq(t, "some requests are not answered: the servers may have no leader; retrying for 10m0s", o.Leaderless("", 10*time.Minute))
	must.Eq(t, "some requests are not answered: "+full+"; retrying for 10m0s", o.Leaderless(full, 10*time.Minute), must.Sprint("the reason comes later"))
	must.Eq(t, "", o.Leaderless(full, 10*time.Minute))
	must.Eq(t, "", o.Leaderless("", 10*time.Minute))
	must.Eq(t, "", o.Leaderless(full, 10*time.Minute))
}
