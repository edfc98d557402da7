package main

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// lookBound is the longest wait of a person who reads files or logs of a task: for the first byte, or for a
// line.
const lookBound = 50 * time.Millisecond

// people returns a client of the API with the right to write.
func people(n *testNode) *api.Client {
	config := api.DefaultConfig()
	config.Address, config.SecretID = "http://"+n.server.HTTPAddr(), n.secret
	c, err := api.NewClient(config)
	must.NoError(n.b, err)
	return c
}

// startShell starts a task of raw_exec that runs a script.
func (n *testNode) startShell(script string) *api.Allocation {
	n.register(n.job("shell", 1, "raw_exec", map[string]any{"command": "/bin/sh", "args": []string{"-c", `>"$0/$NOMAD_ALLOC_ID.ready"; ` + script, n.file("notes")}}))
	id := n.running(1)[0].ID
	a, _, err := people(n).Allocations().Info(string(id), nil)
	must.NoError(n.b, err)
	return a
}

// firstByte notes when it was written to first.
type firstByte struct{ at time.Time }

func (f *firstByte) Write(b []byte) (int, error) {
	if f.at.IsZero() {
		f.at = time.Now()
	}
	return len(b), nil
}

// figureNodeExec: the time from the request for a command to its first byte.
func figureNodeExec(b *testing.B) {
	commands := 20
	if measure.SizeOf(b) == measure.Full {
		commands = 200
	}
	n := newTestNode(b)
	alloc := n.startShell("exec sleep 100000")
	caller := people(n)
	var slow, middle []time.Duration
	for range measure.PairsOf(b) {
		var times []time.Duration
		for range commands {
			var out firstByte
			began := time.Now()
			code, err := caller.Allocations().Exec(context.Background(), alloc, "task", false, []string{"/bin/echo", "hello"}, strings.NewReader(""), &out, &out, nil, nil)
			must.NoError(b, err)
			must.Zero(b, code)
			must.False(b, out.at.IsZero(), must.Sprint("no byte of the command arrived"))
			times = append(times, out.at.Sub(began))
		}
		slow, middle = append(slow, percentile(times, 99)), append(middle, percentile(times, 50))
	}
	reportTimes(b, "first-byte-p99", slow, lookBound)
	measure.Count(b, percentile(middle, 50).Seconds()*1000, "first-byte-p50-ms")
	n.reportLoad()
}

// figureNodeLogs: the time from the write of a line until its follower has it, alone and with 1,000
// followers; and the memory that the client needs for each of them.
func figureNodeLogs(b *testing.B) {
	n := newTestNode(b)
	alloc := n.startShell("while :; do date +%s%N; sleep 0.05; done")
	lines := 20
	if measure.SizeOf(b) == measure.Full {
		lines = 200
	}
	b.Run("alone", func(b *testing.B) { n.followed(b, alloc, 1, lines) })
	b.Run("crowd", func(b *testing.B) { n.followed(b, alloc, 1000, lines) })
	n.reportLoad()
}

// followed follows a log with so many followers, and reports how old the lines of one of them are.
func (n *testNode) followed(b *testing.B, alloc *api.Allocation, followers, lines int) {
	before := memoryOf(b, n.client.Process.Pid)
	var ending sync.WaitGroup
	end := make(chan struct{})
	defer func() { close(end); ending.Wait() }()
	ages := make(chan time.Duration, lines)
	begun := make(chan struct{}, followers)
	caller := people(n)
	for i := range followers {
		frames, errs := caller.AllocFS().Logs(alloc, true, "task", "stdout", "end", 0, end, nil)
		ending.Go(func() { readLines(b, frames, errs, end, begun, ages, i == 0) })
	}
	for range followers {
		<-begun
	}
	for len(ages) > 0 {
		<-ages // of lines from before
	}
	var slow, middle []time.Duration
	for range measure.PairsOf(b) {
		var times []time.Duration
		for range lines {
			times = append(times, <-ages)
		}
		slow, middle = append(slow, percentile(times, 99)), append(middle, percentile(times, 50))
	}
	reportTimes(b, "line-p99", slow, lookBound)
	measure.Count(b, percentile(middle, 50).Seconds()*1000, "line-p50-ms")
	measure.Count(b, (memoryOf(b, n.client.Process.Pid)-before)/1024/float64(followers), "client-KiB/follower")
}

// readLines reads frames. It posts the ages of lines, and once that it has begun.
func readLines(b *testing.B, frames <-chan *api.StreamFrame, errs <-chan error, end <-chan struct{}, begun chan<- struct{}, ages chan<- time.Duration, post bool) {
	first := true
	for {
		select {
		case <-end:
			return
		case err := <-errs:
			if first {
				begun <- struct{}{} // the figure must not wait for this follower
			}
			b.Errorf("a follower: %v", err)
			return
		case frame, open := <-frames:
			if !open {
				return
			}
			if first && len(frame.Data) > 0 {
				first = false
				begun <- struct{}{}
			}
			if !post {
				continue
			}
			for line := range bytes.Lines(frame.Data) {
				ns, err := strconv.ParseInt(strings.TrimSpace(string(line)), 10, 64)
				if err != nil {
					continue // the line is cut
				}
				select {
				case ages <- time.Since(time.Unix(0, ns)):
				default: // no figure waits for it
				}
			}
		}
	}
}
