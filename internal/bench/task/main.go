// Command task is the raw_exec task that package bench measures. It creates the file
// DIR/ALLOC.ready when it is ready for its signal, SIGINT. Then it runs for TIME, writes
// the times of the signal and of its end to DIR/ALLOC.end, in nanoseconds since 1970, and ends.
//
//	task DIR TIME
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "task:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%d arguments, not 2", len(args))
	}
	own, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	file := filepath.Join(args[0], os.Getenv("NOMAD_ALLOC_ID"))
	if err := os.WriteFile(file+".ready", nil, 0o600); err != nil {
		return err
	}
	<-signals
	signaled := time.Now()
	time.Sleep(own)
	return os.WriteFile(file+".end", fmt.Appendf(nil, "%d %d\n", signaled.UnixNano(), time.Now().UnixNano()), 0o600)
}
