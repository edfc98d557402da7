package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Reading ends for every stream. The frames do not depend on how the bytes arrive, and they are those of a
// plain decoder.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(`{}{"Data":"YQ==","File":"f","Offset":1}`))
	f.Add([]byte(`{"FileEvent":"file deleted"}{"Data":1}`))
	f.Add([]byte("{\"Data\":\"YQ"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		read := func(from io.Reader) (frames []wire.StreamFrame, failed bool) {
			for frame, err := range readFrames(from) {
				must.False(t, failed)
				if err != nil {
					failed = true
					continue
				}
				frames = append(frames, frame)
			}
			return frames, failed
		}
		frames, failed := read(bytes.NewReader(stream))
		again, failedAgain := read(iotest.OneByteReader(bytes.NewReader(stream)))
		must.Eq(t, frames, again)
		must.Eq(t, failed, failedAgain)

		var plain []wire.StreamFrame
		decoder := json.NewDecoder(bytes.NewReader(stream))
		for {
			var frame wire.StreamFrame
			err := decoder.Decode(&frame)
			if err != nil {
				must.Eq(t, failed, !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
				break
			}
			if len(frame.Data) > 0 || frame.FileEvent != "" {
				plain = append(plain, frame)
			}
		}
		must.Eq(t, plain, frames)
	})
}
