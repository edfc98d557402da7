package sdk

import (
	"os"
	"os/signal"
	"syscall"
)

// unignoreSignals gives the tasks that the driver starts the default action of each signal. A process
// inherits ignored signals, for example those that nohup ignores, and a shell cannot trap them. It does not
// inherit handlers, so the plugin handles these signals, and does nothing.
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
