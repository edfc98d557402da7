package watchdog

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// Argument is the first argument of a watchdog process. Its name does not collide with a command of
// a program that imports this package.
const Argument = "nodedrain-watchdog"

// Protocol is the version of the protocol between client and watchdog.
const Protocol = 1

// config are the arguments of a watchdog.
type config struct {
	// dir is the folder of the watchdog.
	dir string
	// number is the Number of the client that holds the watchdog.
	number int64
}

func (c config) args() []string {
	return []string{Argument, "-protocol", strconv.Itoa(Protocol), "-dir", c.dir, "-number", strconv.FormatInt(c.number, 10)}
}

// parseArgs reads the arguments after [Argument].
func parseArgs(args []string) (c config, err error) {
	flags := flag.NewFlagSet(Argument, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	protocol := flags.Int("protocol", 0, "")
	flags.StringVar(&c.dir, "dir", "", "")
	flags.Int64Var(&c.number, "number", 0, "")
	// A later protocol may have flags that this one does not have: the version decides first.
	err = flags.Parse(args)
	switch {
	case *protocol != Protocol:
		return c, fmt.Errorf("this watchdog speaks protocol %d, not %d", Protocol, *protocol)
	case err != nil:
		return c, err
	case c.dir == "" || flags.NArg() > 0:
		return c, errors.New("a watchdog needs a folder, and takes flags only")
	}
	return c, nil
}

// run is the process of a watchdog. It reads messages from in, and reports on out when it is ready. It
// returns the exit code.
func run(args []string, in io.Reader, out io.WriteCloser) int {
	process.Economize()
	// A watchdog must not end before its tasks.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE)
	disk := newDisk(os.Stderr)
	defer disk.await(func() error { return nil }) // the log is complete
	logger := slog.New(slog.NewTextHandler(disk, nil))
	if err := process.Rename("nodedrain-watch"); err != nil {
		logger.Warn("the process name of the watchdog could not be set", "error", err)
	}
	d, lock, err := begin(args, in, disk, logger)
	if err != nil {
		_ = process.ReportReady(out, Protocol, err)
		return 1
	}
	defer lock.Close()
	if err := process.ReportReady(out, Protocol, nil); err != nil {
		logger.Warn("the client does not wait for its watchdog", "error", err)
	}
	_ = out.Close()
	debug.FreeOSMemory()
	if err := d.loop(); err != nil {
		logger.Error("the watchdog cannot continue", "error", err)
		return 1
	}
	return 0
}

// begin reads the first guards and takes the place of an earlier watchdog.
func begin(args []string, in io.Reader, disk *disk, logger *slog.Logger) (*dog, *os.File, error) {
	c, err := parseArgs(args)
	if err != nil {
		return nil, nil, err
	}
	d := &dog{dir: c.dir, disk: disk, logger: logger, messages: json.NewDecoder(in)}
	if d.bootID, err = process.BootID(); err != nil {
		return nil, nil, err
	}
	if d.groups, err = cgroup.Find("/"); err != nil {
		return nil, nil, err
	}
	for {
		m, err := d.read()
		if err != nil {
			return nil, nil, fmt.Errorf("the client has not sent all guards: %w", err)
		}
		m.apply(&d.watch)
		if m.Begin {
			break
		}
	}
	lock, err := take(c.dir, c.number)
	if err != nil {
		return nil, nil, err
	}
	return d, lock, nil
}
