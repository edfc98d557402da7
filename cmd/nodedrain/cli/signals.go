package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// HoldSignals keeps signals from killing this process while it has processes that must end with it: a
// second Ctrl-C, the end of the terminal, and the end of the program that reads the output. The last does
// not end the context.
func HoldSignals(ctx context.Context) (context.Context, context.CancelFunc) {
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return ctx, func() {
		stop()
		signal.Stop(pipes)
	}
}
