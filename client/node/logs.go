package node

import (
	"context"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog/keeper"
)

const (
	// keeperTimeout is the timeout of the start of a log keeper. keeperEnd is the timeout of its
	// end. It is longer than a working keeper needs.
	keeperTimeout = 10 * time.Second
	keeperEnd     = 3 * keeper.DrainTime
	// keeperRetry is the wait before a log keeper that died is started again.
	keeperRetry = time.Second
)

// logs starts the log keepers of tasks, which continue to run without the client.
type logs struct {
	// life ends when the goroutines that watch log keepers must end.
	life    context.Context
	command keeper.Command
	logger  *slog.Logger
	running sync.WaitGroup

	mu   sync.Mutex
	kept map[logPlace]*kept // guarded by mu
}

// logPlace is where the log of a task is: a folder, and the name of the task as a path element.
type logPlace struct{ folder, task string }

// kept is a log keeper that this client watches.
type kept struct {
	// end ends the watch. The watch then returns the running keeper, or nil.
	end  context.CancelFunc
	last chan *keeper.Keeper
}

func newLogs(life context.Context, command keeper.Command, logger *slog.Logger) *logs {
	return &logs{life: life, command: command, logger: logger, kept: make(map[logPlace]*kept)}
}

// logPaths are where a driver sends the output of a task.
type logPaths struct{ stdout, stderr string }

// config returns the configuration of a task's log keeper.
func (l *logs) config(p logPlace, limits cluster.LogConfig) keeper.Config {
	return keeper.Config{Logs: p.folder, Task: p.task, Limits: tasklog.Limits{
		MaxFiles: limits.MaxFiles, MaxFileSize: limits.MaxFileBytes(),
	}}
}

// begin returns the log paths of a new start.
func (l *logs) begin(ctx context.Context, d driver.Driver, rotates bool, p logPlace, limits cluster.LogConfig) (logPaths, error) {
	switch {
	case d.Capabilities().NoLogCollection:
		return logPaths{"/dev/null", "/dev/null"}, nil
	case rotates:
		return logPaths{rotated(p, "stdout", limits), rotated(p, "stderr", limits)}, nil
	}
	c := l.config(p, limits)
	return logPaths{c.FIFO("stdout"), c.FIFO("stderr")}, l.keep(ctx, c)
}

// rotated returns the path for a driver that writes and rotates the log files itself.
func rotated(p logPlace, stream string, limits cluster.LogConfig) string {
	values := url.Values{"max_files": {strconv.Itoa(limits.MaxFiles)}, "max_file_size": {strconv.FormatInt(limits.MaxFileBytes(), 10)}}
	return (&url.URL{Scheme: "rotate", OmitHost: true, Path: filepath.Join(p.folder, p.task+"."+stream), RawQuery: values.Encode()}).String()
}

// resume continues with the log keeper of a task that runs, if the task has one.
func (l *logs) resume(ctx context.Context, p logPlace, limits cluster.LogConfig) error {
	c := l.config(p, limits)
	if !exists(c.FIFO("stdout")) {
		return nil
	}
	return l.keep(ctx, c)
}

// keep starts or finds a log keeper, and watches it. Calls for one task do not overlap.
func (l *logs) keep(ctx context.Context, c keeper.Config) error {
	place := logPlace{c.Logs, c.Task}
	l.mu.Lock()
	watched := l.kept[place] != nil
	l.mu.Unlock()
	if watched {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, keeperTimeout)
	defer cancel()
	k, err := keeper.Start(ctx, l.command, c)
	if err != nil {
		return err
	}
	watching, end := context.WithCancel(l.life)
	one := &kept{end: end, last: make(chan *keeper.Keeper, 1)}
	l.mu.Lock()
	l.kept[place] = one
	l.mu.Unlock()
	l.running.Go(func() { one.last <- l.watch(watching, c, k) })
	return nil
}

// watch restarts the log keeper when it dies, until the context ends. It returns the running
// keeper, or nil.
func (l *logs) watch(ctx context.Context, c keeper.Config, k *keeper.Keeper) *keeper.Keeper {
	for {
		if err := k.Wait(ctx); err != nil {
			return k
		}
		k.Close()
		l.logger.Warn("a log keeper died, and the client starts another", "task", c.Task, "folder", c.Logs)
		for {
			next, err := keeper.Start(ctx, l.command, c)
			if err == nil {
				k = next
				break
			}
			if ctx.Err() != nil {
				return nil
			}
			l.logger.Error("a log keeper did not start; the client retries", "task", c.Task, "folder", c.Logs, "error", err)
			sleep(ctx, keeperRetry)
		}
	}
}

// take ends the watch of a log keeper, and returns the running keeper, or nil.
func (l *logs) take(place logPlace) *keeper.Keeper {
	l.mu.Lock()
	one := l.kept[place]
	delete(l.kept, place)
	l.mu.Unlock()
	if one == nil {
		return nil
	}
	one.end()
	return <-one.last
}

// end stops the log keeper of a task after it has read the rest. It kills a keeper that does not
// stop.
func (l *logs) end(ctx context.Context, p logPlace) error {
	c := keeper.Config{Logs: p.folder, Task: p.task}
	ctx, cancel := context.WithTimeout(ctx, keeperEnd)
	defer cancel()
	if !exists(p.folder) {
		return keeper.EndLost(ctx, c)
	}
	k := l.take(p)
	if k == nil {
		var err error
		if k, err = keeper.Find(c); err != nil || k == nil {
			return err
		}
	}
	if err := k.Stop(ctx); err != nil {
		l.logger.Warn("the last output of a task may be missing in its log", "task", c.Task, "folder", c.Logs, "error", err)
	}
	return nil
}

// close leaves all log keepers to the next client.
func (l *logs) close() {
	l.mu.Lock()
	all := l.kept
	l.kept = make(map[logPlace]*kept)
	l.mu.Unlock()
	for _, one := range all {
		one.end()
		if k := <-one.last; k != nil {
			k.Close()
		}
	}
	l.running.Wait()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
