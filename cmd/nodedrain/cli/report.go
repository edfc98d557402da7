package cli

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// Reporter is a writer that keeps its first error: a command fails if its report could not
// be written.
type Reporter struct {
	To  io.Writer
	Err error
}

func (r *Reporter) Write(text []byte) (int, error) {
	n, err := r.To.Write(text)
	if r.Err == nil && err != nil {
		r.Err = fmt.Errorf("printing the report: %w", err)
	}
	return n, err
}

// Underlying returns the writer behind a reporter.
func Underlying(out io.Writer) io.Writer {
	if r, is := out.(*Reporter); is {
		return r.To
	}
	return out
}

// TerminalWidth returns the width of the terminal behind out, or zero if there is none.
func TerminalWidth(out io.Writer) (columns int) {
	f, ok := Underlying(out).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}
