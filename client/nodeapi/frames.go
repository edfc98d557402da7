package nodeapi

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// MaxFrame bounds one line of the stream of a command, in bytes, without its end. A longer line ends the
// stream.
const MaxFrame = 1 << 20

// chunk is the most output in one frame, in bytes.
const chunk = 64 << 10

// badFrame states why a line is no frame.
type badFrame struct{ why string }

func (b *badFrame) Error() string { return b.why }

type frameReader struct{ lines *bufio.Reader }

func newFrameReader(r *bufio.Reader) *frameReader { return &frameReader{lines: r} }

// next returns the next frame. The error is a [badFrame], or that of the connection: io.EOF at its end, also
// in the midst of a line.
func (r *frameReader) next() (wire.ExecInput, error) {
	var line []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		if len(line)+len(part) > MaxFrame+1 {
			return wire.ExecInput{}, &badFrame{fmt.Sprintf("a frame has more than %d bytes", MaxFrame)}
		}
		if err == nil && line == nil {
			line = part // it is decoded before the next read
			break
		}
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return wire.ExecInput{}, err
		}
	}
	var f wire.ExecInput
	if err := json.Unmarshal(line, &f); err != nil {
		return wire.ExecInput{}, &badFrame{"a frame is malformed: " + err.Error()}
	}
	return f, nil
}

// terminalSize returns the size, and false for one that no terminal has.
func terminalSize(s *wire.TerminalSize) (driver.TerminalSize, bool) {
	const most = 1<<16 - 1
	if s.Height < 1 || s.Width < 1 || s.Height > most || s.Width > most {
		return driver.TerminalSize{}, false
	}
	return driver.TerminalSize{Height: s.Height, Width: s.Width}, true
}

// frameWriter writes frames. It is safe for concurrent use. After an error, and after the frame that reports
// the exit code, it writes nothing.
type frameWriter struct {
	// turn holds a value while a goroutine writes.
	turn chan struct{}
	to   io.Writer

	mu  sync.Mutex
	err error // why nothing more is written; guarded by mu
}

func newFrameWriter(to io.Writer) *frameWriter {
	return &frameWriter{turn: make(chan struct{}, 1), to: to}
}

func (w *frameWriter) write(f wire.ExecOutput) error {
	line, err := json.Marshal(f)
	if err != nil {
		return err
	}
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	if err := w.failed(); err != nil {
		return err
	}
	_, err = w.to.Write(append(line, '\n'))
	if err == nil && f.Exited {
		err = io.ErrClosedPipe
	}
	w.mu.Lock()
	w.err = err
	w.mu.Unlock()
	if f.Exited {
		return nil
	}
	return err
}

// failed returns why nothing more is written, or nil.
func (w *frameWriter) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// alive writes a sign of life, unless a write is in progress.
func (w *frameWriter) alive() error {
	select {
	case w.turn <- struct{}{}:
		<-w.turn
		return w.write(wire.ExecOutput{})
	default:
		return nil
	}
}

// outputStream writes one stream of a command as frames.
type outputStream struct {
	frames *frameWriter
	wrap   func(*wire.ExecData) wire.ExecOutput
}

// Write implements [io.Writer].
func (s outputStream) Write(data []byte) (n int, err error) {
	for len(data) > 0 {
		part := data[:min(len(data), chunk)]
		if err := s.frames.write(s.wrap(&wire.ExecData{Data: part})); err != nil {
			return n, err
		}
		n, data = n+len(part), data[len(part):]
	}
	return n, nil
}

func stdoutFrame(b *wire.ExecData) wire.ExecOutput { return wire.ExecOutput{Stdout: b} }
func stderrFrame(b *wire.ExecData) wire.ExecOutput { return wire.ExecOutput{Stderr: b} }
