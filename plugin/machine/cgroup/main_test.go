package cgroup_test

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/internal/freshmachine"
)

// asHeadless makes the test binary a process whose first thread ends and whose others live.
const asHeadless = "NODEDRAIN_TEST_HEADLESS"

// Only in an init function the goroutine of main is certainly on the first thread, and stays there. Bug: on a busy machine
// another thread ended.
func init() {
	if os.Getenv(asHeadless) != "" {
		runtime.LockOSThread()
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(asHeadless) != "" {
		signal.Ignore(unix.SIGINT, unix.SIGTERM)
		runtime.GOMAXPROCS(2) // the first thread takes its processor with it
		go func() {
			_, _ = os.Stdout.WriteString("ready\n")
			<-time.After(time.Hour) // a killed run leaves it for an hour at most
			os.Exit(0)
		}()
		syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
	freshmachine.Enter()
	m.Run()
}
