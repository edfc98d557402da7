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

func TestMain(m *testing.M) {
	if os.Getenv(asHeadless) != "" {
		signal.Ignore(unix.SIGINT, unix.SIGTERM)
		runtime.GOMAXPROCS(2) // the first thread takes its processor with it
		runtime.LockOSThread()
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
