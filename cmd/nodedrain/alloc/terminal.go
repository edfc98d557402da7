package alloc

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// rawTerminal hands each key of a terminal on at once, Ctrl-C too. The caller calls restore.
func rawTerminal(in *os.File) (restore func(), err error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	return func() { _ = term.Restore(int(in.Fd()), before) }, nil
}

// watchSize sends the size of a terminal, and again when it changes, until the context ends.
func watchSize(ctx context.Context, out *os.File, sizes chan<- wire.TerminalSize) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	for {
		if width, height, err := term.GetSize(int(out.Fd())); err == nil && width > 0 && height > 0 {
			select {
			case sizes <- wire.TerminalSize{Height: height, Width: width}:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// escapeReader reads the keys of a user. The escape character at the start of a line is kept until the next
// key: a dot ends the input and calls left, a second one sends one of them.
type escapeReader struct {
	from   io.Reader
	escape byte
	left   func()
	// inLine says that the last key did not end a line, held that it was the escape character at the
	// start of one.
	inLine, held, over bool
}

func (r *escapeReader) Read(p []byte) (int, error) {
	if r.over {
		return 0, io.EOF
	}
	if len(p) < 2 {
		return 0, io.ErrShortBuffer
	}
	buffer := make([]byte, len(p)-1) // a held character may come before it
	n, err := r.from.Read(buffer)
	kept := p[:0]
	for _, key := range buffer[:n] {
		switch {
		case r.held && key == '.':
			r.over = true
			r.left()
			return len(kept), nil
		case r.held && key == r.escape:
			r.held, r.inLine = false, true
			kept = append(kept, key)
			continue
		case r.held:
			r.held = false
			kept = append(kept, r.escape)
		case !r.inLine && key == r.escape:
			r.held = true
			continue
		}
		kept = append(kept, key)
		r.inLine = key != '\r' && key != '\n'
	}
	if err != nil && r.held {
		r.held = false
		kept = append(kept, r.escape)
	}
	return len(kept), err
}
