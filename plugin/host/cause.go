package host

import (
	"io"
	"os"
	"strings"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/plugin/crash"
)

// cause states why a process ended: from its exit status, and from its part of the log of the plugin.
type cause struct {
	log string
	// from is where the process began to write to the log.
	from int64
	// status returns the exit status of the process after its end. It is nil if this client has not
	// started the process.
	status func() string

	once sync.Once
	text string
}

// newCause returns the cause of the end of a process that is about to write to the log.
func newCause(log string) *cause {
	c := &cause{log: log}
	if info, err := os.Stat(log); err == nil {
		c.from = info.Size()
	}
	return c
}

// last returns what the process wrote last.
func (c *cause) last() crash.Reason {
	file, err := os.Open(c.log)
	if err != nil {
		return crash.Reason{}
	}
	defer file.Close()
	from := c.from
	if info, err := file.Stat(); err != nil || info.Size() < from { // the log was rotated
		from = 0
	}
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return crash.Reason{}
	}
	r := crash.Find(file)
	r.Line = plain(r.Line)
	return r
}

// described returns what the process wrote last, in the words of a message, or an empty text.
func (c *cause) described() string {
	switch r := c.last(); {
	case r.Line == "":
		return ""
	case r.Crash:
		return "the first line of its crash: " + r.Line
	default:
		return "the last line of its log: " + r.Line
	}
}

// reason returns why the process ended, or an empty text. The process has ended.
func (c *cause) reason() string {
	c.once.Do(func() { c.text = c.find() })
	return c.text
}

// find is reason without the memory. A crash is the whole reason. SIGKILL comes from outside, so
// the log has no reason for it.
func (c *cause) find() string {
	status := ""
	if c.status != nil {
		status = c.status()
	}
	if strings.Contains(status, "signal: killed") {
		return status
	}
	r := c.last()
	switch {
	case r.Crash:
		return r.Line
	case r.Line == "":
		return status
	case status == "":
		return "the last line of its log: " + r.Line
	}
	return status + "; the last line of its log: " + r.Line
}
