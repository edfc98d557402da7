package sdk

import (
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
)

type (
	execStream   = grpc.BidiStreamingServer[pb.ExecTaskStreamingRequest, pb.ExecTaskStreamingResponse]
	execResponse = pb.ExecTaskStreamingResponse
	execBytes    = pb.ExecTaskStreamingIOOperation
)

func (s *server) ExecTaskStreaming(stream execStream) error {
	d, ok := s.driver.(StreamExecer)
	if !ok {
		return s.unsupported("ExecTaskStreaming")
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	setup := first.GetSetup()
	if setup == nil {
		return status.Error(codes.InvalidArgument, "the first message has no setup")
	}
	in, typed := io.Pipe()
	defer in.Close() // unblocks a write of the goroutine below
	resize := make(chan driver.TerminalSize, 1)
	go receive(stream, first, typed, resize) // ends with the stream, which ends with this call

	var mu sync.Mutex // a stream has one sender at a time
	send := func(m *execResponse) error {
		mu.Lock()
		defer mu.Unlock()
		return stream.Send(m) //lint:lock the lock orders the messages of this stream only
	}
	stdout := &output{send: func(b *execBytes) error { return send(&execResponse{Stdout: b}) }}
	stderr := &output{send: func(b *execBytes) error { return send(&execResponse{Stderr: b}) }}
	streams := driver.ExecStreams{Stdin: in, Stdout: stdout, Stderr: stderr, TTY: setup.GetTty(), Resize: resize}
	exit, err := d.ExecStreaming(stream.Context(), driver.TaskID(setup.GetTaskId()), setup.GetCommand(), streams)
	if err != nil {
		return toStatus(err)
	}
	for _, m := range []*execResponse{
		{Stdout: &execBytes{Close: true}},
		{Stderr: &execBytes{Close: true}},
		{Exited: true, Result: fromExit(exit)},
	} {
		if err := send(m); err != nil {
			return err
		}
	}
	return nil
}

// receive passes input and sizes to the command until the stream ends.
func receive(stream execStream, m *pb.ExecTaskStreamingRequest, typed *io.PipeWriter, resize chan driver.TerminalSize) {
	for {
		if size := m.GetTtySize(); size != nil {
			s := driver.TerminalSize{Height: int(size.GetHeight()), Width: int(size.GetWidth())}
			select { // only the last size counts
			case <-resize:
			default:
			}
			select {
			case resize <- s:
			default:
			}
		}
		if in := m.GetStdin(); in != nil {
			if len(in.GetData()) > 0 {
				_, _ = typed.Write(in.GetData()) // on an error the command does not read any more
			}
			if in.GetClose() {
				_ = typed.Close()
			}
		}
		var err error
		if m, err = stream.Recv(); err != nil {
			_ = typed.CloseWithError(io.EOF)
			return
		}
	}
}

// output sends everything that is written to it.
type output struct{ send func(*execBytes) error }

func (o *output) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if err := o.send(&execBytes{Data: append([]byte(nil), b...)}); err != nil {
		return 0, err
	}
	return len(b), nil
}
