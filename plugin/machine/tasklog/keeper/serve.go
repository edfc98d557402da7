package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog"
)

// Main is the process of a log keeper. It returns the exit code after SIGTERM. The arguments are
// those after the name of the subcommand. It closes stdout when it is ready.
func Main(args []string, stdout io.WriteCloser, stderr io.Writer) int {
	process.Economize()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT)
	if err := serve(ctx, args, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "log keeper:", err)
		return 1
	}
	return 0
}

// serve keeps logs until the context ends.
func serve(ctx context.Context, args []string, stdout io.WriteCloser, stderr io.Writer) error {
	k, err := open(args)
	if err != nil {
		_ = process.ReportReady(stdout, Protocol, err) // Without a client there is nothing to do.
		return err
	}
	defer k.close()
	if err := process.ReportReady(stdout, Protocol, nil); err != nil {
		return fmt.Errorf("the client disconnected: %w", err)
	}
	if err := stdout.Close(); err != nil {
		return err
	}
	debug.FreeOSMemory()
	var all sync.WaitGroup
	for _, s := range k.streams {
		all.Go(func() {
			if err := s.copy(ctx); err != nil {
				_, _ = fmt.Fprintln(stderr, "log keeper:", err)
			}
		})
	}
	all.Wait()
	return nil
}

// kept is what a keeper has open.
type kept struct {
	dir     *os.Root
	lock    *os.File
	streams []stream
}

type stream struct {
	fifo *os.File
	log  *tasklog.Log
}

func open(args []string) (_ *kept, err error) {
	c, err := parseArgs(args)
	if err != nil {
		return nil, err
	}
	k := &kept{}
	defer func() {
		if err != nil {
			k.close()
		}
	}()
	if k.dir, err = os.OpenRoot(c.Logs); err != nil {
		return nil, err
	}
	if k.lock, err = lockIdentity(k.dir, c); err != nil {
		return nil, err
	}
	for _, name := range streams() {
		fifo, err := openFIFO(k.dir, c, name)
		if err != nil {
			return nil, err
		}
		writer, err := tasklog.Open(k.dir, c.Task+"."+name, c.Limits)
		if err != nil {
			return nil, errors.Join(err, fifo.Close())
		}
		k.streams = append(k.streams, stream{fifo: fifo, log: tasklog.NewLog(writer)})
	}
	return k, nil
}

// copy copies the stream to its log until the context ends, and closes the log.
func (s stream) copy(ctx context.Context) error {
	copied := s.log.Copy(ctx, s.fifo, DrainTime)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), DrainTime)
	defer cancel()
	return errors.Join(copied, s.log.Close(end))
}

func (k *kept) close() {
	for _, s := range k.streams {
		_ = s.fifo.Close()
	}
	if k.lock != nil {
		_ = k.lock.Close()
	}
	if k.dir != nil {
		_ = k.dir.Close()
	}
}

// lockIdentity takes the lock of the task's keeper, and writes who has it.
func lockIdentity(dir *os.Root, c Config) (*os.File, error) {
	self, err := process.Identify(os.Getpid())
	if err != nil {
		return nil, err
	}
	content, err := json.Marshal(self)
	if err != nil {
		return nil, err
	}
	file, err := dir.OpenFile(c.identityFile(), os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	switch err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		err = fmt.Errorf("another log keeper serves task %s in %s", c.Task, c.Logs)
	case err == nil:
		if err = file.Truncate(0); err == nil {
			_, err = file.WriteAt(content, 0)
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// openFIFO makes the FIFO if it does not exist, and opens it for reading and writing: it has a reader
// and no end while the keeper lives.
func openFIFO(dir *os.Root, c Config, name string) (*os.File, error) {
	parent, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	err = unix.Mknodat(int(parent.Fd()), c.fifo(name), unix.S_IFIFO|0o600, 0)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make FIFO %s: %w", c.FIFO(name), err)
	}
	fd, err := unix.Openat(int(parent.Fd()), c.fifo(name), unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open FIFO %s: %w", c.FIFO(name), err)
	}
	file := os.NewFile(uintptr(fd), c.FIFO(name))
	info, err := file.Stat()
	if err == nil && info.Mode().Type() != fs.ModeNamedPipe {
		err = errors.New("it is not a FIFO")
	}
	if err == nil {
		err = file.Chmod(0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open FIFO %s: %w", c.FIFO(name), err), file.Close())
	}
	return file, nil
}
