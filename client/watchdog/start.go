package watchdog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// Options are the options of [Start].
type Options struct {
	// Program is the path of the program; required. It imports this package.
	Program string
	// Dir is the folder of the watchdog, an absolute path; required. Start creates it.
	Dir string
	// Groups are the machine's control groups.
	Groups cgroup.Hierarchies
	// Contact is the last answered heartbeat.
	Contact guard.Contact
	// Guards are the allocations to guard.
	Guards []guard.Guard
}

const (
	// group is the control group of watchdogs. It stays, and nothing kills it.
	group = "nodedrain-watchdog"
	// sendLimit limits the time of a write to the pipe. A watchdog reads at once, unless it is
	// stopped.
	sendLimit = 5 * time.Second
	// maxLog is the size of the log, in bytes, at which a start empties it.
	maxLog  = 1 << 20
	logFile = "log"
)

// Process is a watchdog that runs. Its owner calls [Process.Release] or [Process.Stop]. It is not
// safe for concurrent use, except Ended.
type Process struct {
	// ID identifies the process.
	ID    process.Identity
	in    *os.File
	ended chan struct{}
}

// Start starts a watchdog, which ends an earlier one. When Start returns without an error, only the
// new one watches. After an error, an earlier one may run: call [End]. A goroutine of this package
// reaps the process.
func Start(ctx context.Context, o Options) (*Process, error) {
	p, err := start(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("start a watchdog: %w", err)
	}
	return p, nil
}

func start(ctx context.Context, o Options) (*Process, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	p, out, err := launch(o)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	stop := context.AfterFunc(ctx, func() { _ = out.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err = p.send(contactMessage(o.Contact))
	for i := 0; i < len(o.Guards) && err == nil; i++ {
		err = p.Put(o.Guards[i])
	}
	if err == nil {
		err = p.send(message{Begin: true})
	}
	if ready := process.AwaitReady(out, Protocol); err != nil || ready != nil {
		return nil, errors.Join(err, ready, context.Cause(ctx), p.Stop())
	}
	return p, nil
}

// launch starts the process. out is its standard output.
func launch(o Options) (_ *Process, out *os.File, err error) {
	var files []*os.File // those of the watchdog
	defer func() {
		for _, file := range files {
			_ = file.Close()
		}
	}()
	log, err := openLog(filepath.Join(o.Dir, logFile))
	if err != nil {
		return nil, nil, err
	}
	files = append(files, log)
	in, feed, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	files = append(files, in)
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, feed.Close())
	}
	files = append(files, stdout)
	cmd := exec.Command(o.Program, config{dir: o.Dir, number: nextNumber(o.Dir)}.args()...)
	cmd.Args[0] = "nodedrain"
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = []string{}, "/", in, stdout, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// The group is not that of the client, which systemd may kill.
	g, err := o.Groups.Create(group, cgroup.Limits{})
	if err == nil {
		err = g.Start(cmd.SysProcAttr, cmd.Start)
	}
	if err != nil {
		return nil, nil, errors.Join(err, feed.Close(), out.Close())
	}
	p := &Process{in: feed, ended: make(chan struct{})}
	p.ID, err = process.Identify(cmd.Process.Pid) // a child that is not reaped
	if err != nil {
		return nil, nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait(), feed.Close(), out.Close())
	}
	go process.Reap(p.ID, func() {
		_ = cmd.Wait()
		close(p.ended)
	})
	return p, out, nil
}

// openLog opens the log for the errors of a watchdog.
func openLog(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Size() > maxLog {
		err = file.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Put guards an allocation. When it returns, the guard holds even if the caller dies at once.
func (p *Process) Put(g guard.Guard) error { return p.send(message{Put: &g}) }

// Remove ends the guard of an allocation.
func (p *Process) Remove(alloc cluster.AllocID) error { return p.send(message{Remove: alloc}) }

// Contact sends that a heartbeat was answered.
func (p *Process) Contact(c guard.Contact) error { return p.send(contactMessage(c)) }

func contactMessage(c guard.Contact) message { return message{Contact: c.Sent, TTL: c.TTL} }

// send writes a message. After an error the watchdog must be replaced: it may have read a part of
// the message.
func (p *Process) send(m message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := p.in.SetWriteDeadline(time.Now().Add(sendLimit)); err != nil {
		return fmt.Errorf("send to the watchdog: %w", err)
	}
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("send to the watchdog: %w", err)
	}
	return nil
}

// Release lets the process continue without its client: it counts the deadlines from now on.
func (p *Process) Release() error { return p.in.Close() }

// Stop kills the process and waits for its end.
func (p *Process) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	return errors.Join(process.Kill(ctx, p.ID), p.in.Close())
}
