package record

import (
	"syscall"
	"testing"

	"github.com/shoenig/test/must"
)

// EncodeFormat returns a file of a format.
func EncodeFormat(format int, body []byte) []byte { return append(header(format, body), body...) }

// Failing are the operations of a disk, one of which fails or kills the process.
type Failing struct {
	At, KillAt int // 1 is the first operation
	Count      int
	Done       []string
}

// FailingDisk opens a folder of records with operations that a test directs.
func FailingDisk(t testing.TB, dir string) (*Disk, *Failing) {
	t.Helper()
	f := &Failing{}
	d, err := openDisk(dir, f)
	must.NoError(t, err)
	*f = Failing{}
	return d, f
}

func (f *Failing) next(name string) error {
	f.Count++
	if f.Count == f.KillAt {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {}
	}
	if f.Count == f.At {
		return syscall.ENOSPC
	}
	f.Done = append(f.Done, name)
	return nil
}

func (f *Failing) write(path string, data []byte) error {
	if err := f.next("write"); err != nil {
		_ = realDisk{}.write(path, data[:len(data)/2]) // what a full disk takes
		return err
	}
	return realDisk{}.write(path, data)
}

func (f *Failing) rename(from, to string) error {
	if err := f.next("rename"); err != nil {
		return err
	}
	return realDisk{}.rename(from, to)
}

func (f *Failing) remove(path string) error {
	if err := f.next("remove"); err != nil {
		return err
	}
	return realDisk{}.remove(path)
}

func (f *Failing) syncDir(path string) error {
	if err := f.next("syncDir"); err != nil {
		return err
	}
	return realDisk{}.syncDir(path)
}
