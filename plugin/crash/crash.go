// Package crash finds out why a program ended, from what the program wrote to its standard error.
//
// The dump of a crash is long. Its first line has the reason, and its last line is a register or a
// frame of a stack. So for a crash that the package recognizes, the reason is the first line. These are
// the crashes of Go, Rust, Java and C++. For all other programs the reason is the last line: a
// program that gives up writes its error last, and so does a crash of Python.
package crash

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"strings"
)

// Reason is what a program wrote last.
type Reason struct {
	// Line is the first line of the crash, or the last line that is not blank, or empty. It has at
	// most [MaxLine] bytes. It is as the program wrote it: it may have control characters.
	Line string
	// Crash: Line belongs to a crash.
	Crash bool
	// Offset is the position of Line in the text, in bytes.
	Offset int64
}

// MaxLine is the length at which [Find] cuts a line, in bytes.
const MaxLine = 1024

// begin matches the first line of a crash. The words of Go are "panic: …", "fatal error: …" and
// "SIGSEGV: …". A line with white space in front of it belongs to a crash that has begun.
var begin = regexp.MustCompile(`^(panic: |fatal error: |SIG[A-Z]+: |thread '[^']*' .*panicked at |Exception in thread |terminate called )`)

// continued matches a first line whose reason is in the next line, as in Rust and C++.
var continued = regexp.MustCompile(`^(thread '.*:$|terminate called after )`)

// Find returns the reason in the text of r. A program may write several crashes, for example when
// it recovers from the first one: then the last one counts. An error of r ends the text.
func Find(r io.Reader) Reason {
	var last, crash Reason
	lines, offset := bufio.NewReaderSize(r, MaxLine), int64(0)
	joins := false // the next line continues the first line of the crash
	for {
		line, size, err := next(lines)
		text := strings.TrimRight(string(line), "\r\n\t ")
		switch {
		case joins:
			joins = false
			crash.Line += " " + strings.TrimSpace(text)
		case begin.MatchString(text):
			crash = Reason{Line: text, Crash: true, Offset: offset}
			joins = continued.MatchString(text)
		}
		if strings.TrimSpace(text) != "" {
			last = Reason{Line: text, Offset: offset}
		}
		if offset += size; err != nil {
			break
		}
	}
	if crash.Crash {
		return crash
	}
	return last
}

// next returns the beginning of the next line, and the size of the whole line.
func next(r *bufio.Reader) (line []byte, size int64, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if size == 0 {
			line = bytes.Clone(part)
		}
		size += int64(len(part))
		if err != bufio.ErrBufferFull {
			return line, size, err
		}
	}
}
