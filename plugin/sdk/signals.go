package sdk

import (
	"os"
	"os/signal"
	"syscall"
)

// unignoreSignals restores the default action of signals for tasks that the driver starts. A
// process inherits ignored signals, for example from nohup, and a shell cannot trap them. A process
// does not inherit handlers. So the plugin installs a handler for each ignored signal, and the
// handler does nothing.
func unignoreSignals() {
	var ignored []os.Signal
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2} {
		if signal.Ignored(s) {
			ignored = append(ignored, s)
		}
	}
	if len(ignored) > 0 { // Notify without signals means all of them
		signal.Notify(make(chan os.Signal, 1), ignored...)
	}
}
