package nodeapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// FuzzFrames reads a stream as frames. It must agree with a decoder of whole lines.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(`{"stdin":{"data":"YQ==","close":true}}` + "\n" + `{"tty_size":{"height":24,"width":80}}` + "\n{}\n"))
	f.Add([]byte("\n"))
	f.Add([]byte(`{"stdin":{"data":"` + strings.Repeat("YWFh", 2000) + `"}}` + "\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := newFrameReader(bufio.NewReaderSize(bytes.NewReader(stream), 16))
		lines := bytes.SplitAfter(stream, []byte("\n"))
		for _, line := range lines[:len(lines)-1] {
			got, err := r.next()
			var expected wire.ExecInput
			if json.Unmarshal(line, &expected) != nil {
				must.Error(t, err)
				must.False(t, errors.Is(err, io.EOF))
				return
			}
			must.NoError(t, err)
			must.Eq(t, expected, got)
			if got.TTYSize != nil {
				size, valid := terminalSize(got.TTYSize)
				must.EqOp(t, valid, size.Height > 0 && size.Width > 0)
			}
		}
		_, err := r.next()
		must.ErrorIs(t, err, io.EOF)
	})
}

// A line of the greatest length is a frame, and one byte more is none.
func TestFrames_bound(t *testing.T) {
	t.Parallel()
	line := strings.Repeat(" ", MaxFrame-2) + "{}"
	_, err := newFrameReader(bufio.NewReader(strings.NewReader(line + "\n"))).next()
	must.NoError(t, err)
	_, err = newFrameReader(bufio.NewReader(strings.NewReader(" " + line + "\n"))).next()
	must.EqError(t, err, "a frame has more than 1048576 bytes")
}

// The frames have the names and forms that callers of the compatible API expect.
func TestFrames_forms(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := newFrameWriter(&b)
	_, err := outputStream{w, stdoutFrame}.Write([]byte("a"))
	must.NoError(t, err)
	_, err = outputStream{w, stderrFrame}.Write([]byte("b"))
	must.NoError(t, err)
	must.NoError(t, w.alive())
	must.NoError(t, w.write(wire.ExecOutput{Stdout: &wire.ExecData{Close: true}}))
	must.NoError(t, w.write(wire.ExecOutput{Exited: true, Result: &wire.ExecResult{}}))
	must.EqOp(t, `{"stdout":{"data":"YQ=="}}
{"stderr":{"data":"Yg=="}}
{}
{"stdout":{"close":true}}
{"exited":true,"result":{"exit_code":0}}
`, b.String())
}
