package plugin

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/plugin/mock"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// Commands returns the drivers that this program contains, and the commands about plugins.
func Commands() cli.Program {
	return cli.Program{
		"plugin": cli.Parent("Serve a task driver, or test a plugin", pluginHelp),
		"plugin mock": func() *cli.Command {
			return serve("Serve the driver of tasks without processes", mockHelp, func() (sdk.Driver, error) { return mock.New(os.Exit) })
		},
		"plugin raw_exec": func() *cli.Command {
			return serve("Serve the driver of processes without isolation", rawExecHelp, func() (sdk.Driver, error) { return rawexec.New(rawexec.Options{}), nil })
		},
		"plugin test": Test,
	}
}

// serve returns the command of a task driver that this program contains. A client starts it like every
// other plugin.
func serve(short, description string, open func() (sdk.Driver, error)) *cli.Command {
	return &cli.Command{
		Short: short, Description: description,
		Run: func(*cli.Call) error {
			d, err := open()
			if err != nil {
				return cli.Errorf("Error starting the driver: %v", err)
			}
			// SIGTERM ends a plugin at once. Its tasks live on.
			signal.Reset(syscall.SIGTERM)
			sdk.Serve(d)
			return nil
		},
	}
}

const pluginHelp = `
  Shows storage plugins, tests the program of a task driver or a device plugin, or serves
  one of the drivers that this program contains. The client of a node starts these
  drivers. Do not start them yourself.`

const mockHelp = `
  Serves the driver "mock" to the client that started this process. Its tasks have no
  processes. They start, end and fail as their config requires, which is useful for tests
  of clients, jobs and drains.

  Keys of a task's config, all optional, with durations such as "10s":

    run_for                  The time until the task ends. By default it runs until a
                             signal.
    exit_code, exit_signal   The result of the task.
    stdout_string            The task writes this text when it starts.
    stop_ignore              The task ignores all signals but SIGKILL.
    kill_after               The time from another signal to the end of the task.
    signal_codes             Exit codes by the name of a signal. The task ignores the
                             others.
    start_block_for          The duration of a start.
    start_error              A start fails with this text.
    start_error_recoverable  The client may repeat such a start.
    hang_at                  The driver does not answer this call, such as "StopTask".
    crash_at                 The driver ends at this call, once for each start.

  Keys of the plugin's own config:

    unhealthy                The driver reports that it is unhealthy, with this text.
    fingerprints             The number of its first reports, by default 1.`

const rawExecHelp = `
  Serves the driver "raw_exec" to the client that started this process. Its tasks are
  processes with the rights of the client, without isolation.

  Keys of a task's config:

    command    The program: an absolute path, a path below the task's folder, or a name in
               the task's folder or in the PATH of its environment.
    args       A list of its arguments.

  Keys of the plugin's own config:

    enabled    The driver starts tasks. The default is false.
    shim_dir   The folder for the driver's records of tasks, by default
               /run/nodedrain/shims.`
