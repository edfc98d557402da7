package keeper

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog"
)

// Protocol is the version of the protocol between client and keeper.
const Protocol = 1

// DrainTime bounds each of the two steps of a keeper's end: to read what the FIFOs have, and to write
// what the buffers have.
const DrainTime = 2 * time.Second

// Config states what a keeper keeps.
type Config struct {
	// Logs is the folder of the log files and of the FIFOs, as an absolute path. It exists.
	Logs string
	// Task is the task's name as a path element.
	Task string
	// Limits bound the log of each stream.
	Limits tasklog.Limits
}

func (c Config) validate() error {
	switch {
	case !filepath.IsAbs(c.Logs):
		return fmt.Errorf("the folder of the logs must be an absolute path, not %q", c.Logs)
	case c.Task == "" || strings.ContainsAny(c.Task, "/\x00"):
		return fmt.Errorf("%q is not a path element", c.Task)
	}
	return nil
}

// FIFO returns the path of the FIFO of a stream, "stdout" or "stderr".
func (c Config) FIFO(stream string) string { return filepath.Join(c.Logs, c.fifo(stream)) }

func (c Config) fifo(stream string) string { return "." + c.Task + "." + stream + ".fifo" }

// identityFile is locked while a keeper lives.
func (c Config) identityFile() string { return "." + c.Task + ".keeper" }

func streams() []string { return []string{"stdout", "stderr"} }

// args are the arguments of the process.
func (c Config) args() []string {
	return []string{
		"-protocol", strconv.Itoa(Protocol), "-logs", c.Logs, "-task", c.Task,
		"-max-files", strconv.Itoa(c.Limits.MaxFiles), "-max-file-size", strconv.FormatInt(c.Limits.MaxFileSize, 10),
	}
}

// parseArgs reads the arguments of the process.
func parseArgs(args []string) (Config, error) {
	var c Config
	flags := flag.NewFlagSet("logkeeper", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	protocol := flags.Int("protocol", 0, "")
	flags.StringVar(&c.Logs, "logs", "", "")
	flags.StringVar(&c.Task, "task", "", "")
	flags.IntVar(&c.Limits.MaxFiles, "max-files", 0, "")
	flags.Int64Var(&c.Limits.MaxFileSize, "max-file-size", 0, "")
	// A later protocol may have flags that this one does not have: the version decides first.
	err := flags.Parse(args)
	switch {
	case *protocol != Protocol:
		return c, fmt.Errorf("this log keeper speaks protocol %d, not %d", Protocol, *protocol)
	case err != nil:
		return c, err
	case flags.NArg() > 0:
		return c, errors.New("a log keeper accepts only flags")
	}
	return c, c.validate()
}
