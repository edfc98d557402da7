package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// LogsQuery selects from the logs of an allocation.
type LogsQuery struct {
	// Task is the task. Stderr selects its standard error, otherwise its standard output.
	Task   string
	Stderr bool
	// Follow makes the node wait at the end of the log for more.
	Follow bool
	// Offset is the number of bytes before the first one, from the start of the oldest kept file, or with
	// FromEnd from the end of the log.
	Offset  int64
	FromEnd bool
	// File is a file of the log that Offset counts from, or empty. The name is the last element of
	// [wire.StreamFrame].File. With the File and the Offset of the last frame a log continues after that
	// frame. Ours.
	File string
}

func (q LogsQuery) values() url.Values {
	v := url.Values{
		"task": {q.Task}, "type": {"stdout"}, "origin": {"start"},
		"follow": {strconv.FormatBool(q.Follow)}, "offset": {strconv.FormatInt(q.Offset, 10)},
	}
	if q.Stderr {
		v.Set("type", "stderr")
	}
	if q.FromEnd {
		v.Set("origin", "end")
	}
	if q.File != "" {
		v.Set("file", q.File)
	}
	return v
}

// Logs yields the frames of a task's log. The iteration ends when the node ends the stream, and after
// the first error, which comes with a zero frame. A stream whose connection is lost ends with an error;
// the caller may continue from the last frame. Frames without content are left out. It ends with the
// context. A frame has at most one MiB of JSON.
func (a Alloc) Logs(ctx context.Context, q LogsQuery) iter.Seq2[wire.StreamFrame, error] {
	return func(yield func(wire.StreamFrame, error) bool) {
		response, err := a.client.connection.send(ctx, http.MethodGet, a.fs("logs"), q.values(), nil)
		if err == nil {
			defer response.Body.Close()
			if response.StatusCode != http.StatusOK {
				err = readError(response)
			}
		}
		if err != nil {
			yield(wire.StreamFrame{}, err)
			return
		}
		for frame, err := range readFrames(response.Body) {
			if !yield(frame, err) {
				return
			}
		}
	}
}

// maxFrame bounds the JSON of one frame.
const maxFrame = 1 << 20

var errFrameTooLarge = errors.New("a frame is larger than 1 MiB")

// readFrames yields the frames of a stream that have content, and at its end the error, unless the stream
// ended between two frames.
func readFrames(stream io.Reader) iter.Seq2[wire.StreamFrame, error] {
	return func(yield func(wire.StreamFrame, error) bool) {
		bounded := &boundedReader{from: stream}
		decoder := json.NewDecoder(bounded)
		for {
			bounded.read = 0
			var frame wire.StreamFrame
			err := decoder.Decode(&frame)
			switch {
			case err == io.EOF:
				return
			case err != nil:
				yield(wire.StreamFrame{}, fmt.Errorf("reading the stream: %w", err))
				return
			case len(frame.Data) == 0 && frame.FileEvent == "":
				continue
			}
			if !yield(frame, nil) {
				return
			}
		}
	}
}

// boundedReader fails when too much was read for one frame.
type boundedReader struct {
	from io.Reader
	// read counts bytes since the last frame. What the decoder has read of the next frame before counts
	// for none.
	read int
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.read >= maxFrame {
		return 0, errFrameTooLarge
	}
	n, err := b.from.Read(p[:min(len(p), maxFrame-b.read)])
	b.read += n
	return n, err
}
