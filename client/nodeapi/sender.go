package nodeapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

const (
	// pieceSize is how much of a file one frame has, in bytes, at most.
	pieceSize = 16 << 10
	// beatInterval is the time between two empty frames of a quiet stream. At these times a reader also
	// reads its file: the kernel does not report all changes, for example on network file systems.
	beatInterval = 5 * time.Second
	// maxStall is how long a caller may take nothing. Then its stream ends: it may keep a removed file
	// on the disk. Servers give their callers less time.
	maxStall = 2 * time.Minute
)

// piece is the memory of one read. A follower that waits has none.
type piece struct {
	data, out []byte
}

func (h *reader) piece() *piece {
	if p, is := h.pieces.Get().(*piece); is {
		return p
	}
	return &piece{data: make([]byte, pieceSize)}
}

// errGone means that the caller does not take its answer.
var errGone = errors.New("the caller has disconnected")

// sender sends parts of files to a caller, as JSON objects one after the other, or plain.
type sender struct {
	w       http.ResponseWriter
	control *http.ResponseController
	plain   bool
	begun   bool
}

func newSender(w http.ResponseWriter, plain bool) *sender {
	return &sender{w: w, control: http.NewResponseController(w), plain: plain}
}

// begin sends the head of the answer. After that there are no refusals.
func (f *sender) begin() error {
	if f.begun {
		return nil
	}
	f.begun = true
	kind := "application/json"
	if f.plain {
		kind = "text/plain; charset=utf-8"
	}
	f.w.Header().Set("Content-Type", kind)
	f.w.Header().Set("X-Content-Type-Options", "nosniff")
	f.w.WriteHeader(http.StatusOK)
	return f.send(nil)
}

// data sends the first n bytes of a piece. Offset is the position after them in the file.
func (f *sender) data(p *piece, n int, file string, offset int64) error {
	if err := f.begin(); err != nil {
		return err
	}
	if f.plain {
		return f.send(p.data[:n])
	}
	out := append(p.out[:0], `{"Offset":`...)
	out = strconv.AppendInt(out, offset, 10)
	out = append(out, `,"Data":"`...)
	out = base64.StdEncoding.AppendEncode(out, p.data[:n])
	out = append(out, `","File":`...)
	out = appendJSON(out, file)
	p.out = append(out, '}')
	return f.send(p.out)
}

// event sends changes of a file. A plain stream has a line of it.
func (f *sender) event(file, event string) error {
	if err := f.begin(); err != nil {
		return err
	}
	if f.plain {
		return f.send(fmt.Appendf(nil, "nodedrain: %s\n", event))
	}
	out := appendJSON([]byte(`{"File":`), file)
	out = appendJSON(append(out, `,"FileEvent":`...), event)
	return f.send(append(out, '}'))
}

// beat sends an empty frame, so that both sides detect the end of the other.
func (f *sender) beat() error {
	if f.plain {
		return nil
	}
	if err := f.begin(); err != nil {
		return err
	}
	return f.send([]byte("{}"))
}

func appendJSON(out []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		return append(out, `""`...) // Never: texts can be marshaled.
	}
	return append(out, quoted...)
}

// send writes and flushes.
func (f *sender) send(p []byte) error {
	_ = f.control.SetWriteDeadline(time.Now().Add(maxStall)) // Not all connections have deadlines.
	if _, err := f.w.Write(p); err != nil {
		return errGone
	}
	if err := f.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errGone
	}
	return nil
}

// broken returns the error of an answer whose source failed.
func (f *sender) broken(err error) error {
	if f.begun && !errors.Is(err, errGone) {
		return &interrupted{err}
	}
	return err
}

// end gives the connection back.
func (f *sender) end() { _ = f.control.SetWriteDeadline(time.Time{}) }

// interrupted is an error after the beginning of an answer.
type interrupted struct{ err error }

func (i *interrupted) Error() string { return i.err.Error() }
func (i *interrupted) Unwrap() error { return i.err }
