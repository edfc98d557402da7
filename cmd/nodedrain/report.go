package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// reporter is a writer that keeps its first error: a command fails if its report could not
// be written.
type reporter struct {
	to  io.Writer
	err error
}

func (r *reporter) Write(text []byte) (int, error) {
	n, err := r.to.Write(text)
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("printing the report: %w", err)
	}
	return n, err
}

// beneath returns the writer behind a reporter.
func beneath(out io.Writer) io.Writer {
	if r, is := out.(*reporter); is {
		return r.to
	}
	return out
}

// terminal returns the width of the terminal behind out, or zero if there is none.
func terminal(out io.Writer) (columns int) {
	f, ok := beneath(out).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}
