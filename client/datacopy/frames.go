package datacopy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	// maxFrame bounds the content of a frame, in bytes.
	maxFrame = 256 << 10
	// frameHeader is the length of what precedes the content.
	frameHeader = 8
)

// ErrDamaged means that bytes of the stream changed on their way. The bytes before them are good: the caller
// continues with a new stream.
var ErrDamaged = errors.New("the stream of the data is damaged")

// frameWriter writes frames. The caller calls end after the last write.
type frameWriter struct {
	w io.Writer
	// frame has room for the header, and then the content so far.
	frame []byte
	table *crc32.Table
}

func newFrameWriter(w io.Writer) *frameWriter {
	return &frameWriter{w: w, frame: make([]byte, frameHeader, frameHeader+maxFrame), table: crc32.MakeTable(crc32.Castagnoli)}
}

// Write adds bytes to the frame, and writes it when it is full.
func (f *frameWriter) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		n := min(len(p), cap(f.frame)-len(f.frame))
		f.frame = append(f.frame, p[:n]...)
		written, p = written+n, p[n:]
		if len(f.frame) == cap(f.frame) {
			if err := f.flush(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// flush writes the frame.
func (f *frameWriter) flush() error {
	content := f.frame[frameHeader:]
	binary.BigEndian.PutUint32(f.frame, uint32(len(content)))
	binary.BigEndian.PutUint32(f.frame[4:], crc32.Checksum(content, f.table))
	_, err := f.w.Write(f.frame)
	f.frame = f.frame[:frameHeader]
	return err
}

// end writes the last frame and the one that ends the stream.
func (f *frameWriter) end() error {
	if len(f.frame) > frameHeader {
		if err := f.flush(); err != nil {
			return err
		}
	}
	return f.flush()
}

// frameReader reads the contents of frames.
type frameReader struct {
	r     io.Reader
	frame []byte
	// rest is what the caller has not read of the frame.
	rest  []byte
	table *crc32.Table
	ended bool
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: r, table: crc32.MakeTable(crc32.Castagnoli)}
}

// Read returns checked bytes. It returns [io.EOF] only after the frame that ends the stream.
func (f *frameReader) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// next reads and checks a frame.
func (f *frameReader) next() error {
	if f.ended {
		return io.EOF
	}
	var header [frameHeader]byte
	if _, err := io.ReadFull(f.r, header[:]); err != nil {
		return cut(err)
	}
	length, sum := binary.BigEndian.Uint32(header[:]), binary.BigEndian.Uint32(header[4:])
	if length > maxFrame {
		return fmt.Errorf("%w: a frame has %d bytes", ErrDamaged, length)
	}
	if f.frame == nil {
		f.frame = make([]byte, maxFrame)
	}
	content := f.frame[:length]
	if _, err := io.ReadFull(f.r, content); err != nil {
		return cut(err)
	}
	if crc32.Checksum(content, f.table) != sum {
		return fmt.Errorf("%w: a frame has another checksum", ErrDamaged)
	}
	if f.ended = length == 0; f.ended {
		return io.EOF
	}
	f.rest = content
	return nil
}

// cut returns the error of a stream that ends too early.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
