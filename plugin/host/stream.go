package host

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
)

// maxPerSecond is the largest number of messages that the host receives from a stream in a second.
// A plugin that sends more must wait.
const maxPerSecond = 100

// Fingerprints implements driver.Driver. It reports the first health at once. Then it reports the
// newest health, at most once in each interval of the options.
func (r *remote) Fingerprints(ctx context.Context, report func(driver.Fingerprint)) error {
	const name = "Fingerprint"
	return open(ctx, &r.calls, r.client.Fingerprint, name, &pb.FingerprintRequest{}, func(receive func() (*pb.FingerprintResponse, error)) error {
		return newest(r.options.FingerprintInterval, func() (driver.Fingerprint, error) {
			answer, err := receive()
			if err == nil && answer.GetErr() != "" {
				err = failText(name, answer.GetErr())
			}
			return fromFingerprint(answer), err
		}, report)
	})
}

// Events implements driver.Driver.
func (r *remote) Events(ctx context.Context, report func(driver.Event)) error {
	return open(ctx, &r.calls, r.client.TaskEvents, "TaskEvents", &pb.TaskEventsRequest{}, each(func(e *pb.DriverTaskEvent) { report(fromEvent(e)) }))
}

// Stats implements driver.Driver. It returns nil when the driver ends the stream, because the task
// has ended.
func (r *remote) Stats(ctx context.Context, id driver.TaskID, interval time.Duration, report func(driver.Usage)) error {
	request := &pb.TaskStatsRequest{TaskId: string(id), CollectionInterval: durationpb.New(interval)}
	err := open(ctx, &r.calls, r.client.TaskStats, "TaskStats", request, each(func(s *pb.TaskStatsResponse) { report(fromUsage(s.GetStats())) }))
	if errors.Is(err, errEnded) {
		return nil
	}
	return err
}

// open opens a stream, and calls read with a function that receives from it. The stream ends with
// read.
func open[Q, M any](ctx context.Context, c *calls, method func(context.Context, Q, ...grpc.CallOption) (grpc.ServerStreamingClient[M], error), name string, request Q, read func(receive func() (*M, error)) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := invoke(ctx, c, method, name, request)
	if err != nil {
		return err
	}
	receive := paced(ctx, stream)
	return read(func() (*M, error) {
		m, err := receive()
		if err != nil {
			err = c.ending(ctx, name, err)
		}
		return m, err
	})
}

// each returns a function that reports what it receives from a stream until an error.
func each[M any](report func(*M)) func(receive func() (*M, error)) error {
	return func(receive func() (*M, error)) error {
		for {
			m, err := receive()
			if err != nil {
				return err
			}
			report(m)
		}
	}
}

// paced returns a function that receives from a stream, at most maxPerSecond messages in a second.
func paced[M any](ctx context.Context, stream grpc.ServerStreamingClient[M]) func() (*M, error) {
	var began time.Time
	taken := 0
	return func() (*M, error) {
		if now := time.Now(); now.Sub(began) >= time.Second {
			began, taken = now, 0
		}
		if taken++; taken > maxPerSecond {
			timer := time.NewTimer(time.Until(began.Add(time.Second)))
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			began, taken = time.Now(), 1
		}
		return stream.Recv()
	}
}

// newest calls report with values of next: first with the first value, then with the newest value,
// at most once in each interval. It reports the last value and then returns the error of next.
// Another goroutine calls next. It ends when next returns an error.
func newest[T any](interval time.Duration, next func() (T, error), report func(T)) error {
	values, end := make(chan T, 1), make(chan error, 1)
	go func() {
		for {
			value, err := next()
			if err != nil {
				end <- err
				return
			}
			select {
			case <-values: // drop an older value
			default:
			}
			values <- value
		}
	}()
	for {
		select {
		case value := <-values:
			report(value)
		case err := <-end:
			select {
			case value := <-values:
				report(value)
			default:
			}
			return err
		}
		timer := time.NewTimer(interval)
		select {
		case <-timer.C:
		case err := <-end:
			timer.Stop()
			end <- err
		}
	}
}

// ExecStreaming implements driver.Driver. While a read of Stdin blocks, one goroutine is left, so
// the caller must close Stdin.
func (r *remote) ExecStreaming(ctx context.Context, id driver.TaskID, command []string, streams driver.ExecStreams) (driver.ExitResult, error) {
	const name = "ExecTaskStreaming"
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := r.client.ExecTaskStreaming(ctx)
	if err != nil {
		return driver.ExitResult{}, r.fail(ctx, name, err)
	}
	setup := &pb.ExecTaskStreamingRequest{Setup: &pb.ExecTaskStreamingRequest_Setup{TaskId: string(id), Command: command, Tty: streams.TTY}}
	// On an error Send returns io.EOF, and Recv returns the reason.
	_ = stream.Send(setup)
	var sending sync.WaitGroup
	sending.Go(func() { sendInput(ctx, stream, streams) })
	defer sending.Wait()
	defer cancel()
	for {
		answer, err := stream.Recv()
		if err != nil {
			return driver.ExitResult{}, r.ending(ctx, name, err)
		}
		if err := writeOutput(streams.Stdout, answer.GetStdout()); err != nil {
			return driver.ExitResult{}, &driver.Error{Class: driver.Fatal, Call: name, Err: err}
		}
		if err := writeOutput(streams.Stderr, answer.GetStderr()); err != nil {
			return driver.ExitResult{}, &driver.Error{Class: driver.Fatal, Call: name, Err: err}
		}
		if answer.GetExited() {
			if answer.GetResult() == nil {
				return driver.ExitResult{Unknown: true}, nil
			}
			return fromExit(answer.GetResult()), nil
		}
	}
}

func writeOutput(to io.Writer, output *pb.ExecTaskStreamingIOOperation) error {
	if to == nil || len(output.GetData()) == 0 {
		return nil
	}
	_, err := to.Write(output.GetData())
	return err
}

// sendInput sends input and sizes of the terminal until the context ends.
func sendInput(ctx context.Context, stream grpc.BidiStreamingClient[pb.ExecTaskStreamingRequest, pb.ExecTaskStreamingResponse], streams driver.ExecStreams) {
	input := make(chan *pb.ExecTaskStreamingIOOperation)
	go readInput(ctx, streams.Stdin, input)
	resize := streams.Resize
	for {
		request := &pb.ExecTaskStreamingRequest{}
		select {
		case <-ctx.Done():
			return
		case request.Stdin = <-input:
			if request.Stdin.GetClose() {
				input = nil
			}
		case size, ok := <-resize:
			if !ok {
				resize = nil
				continue
			}
			request.TtySize = &pb.ExecTaskStreamingRequest_TerminalSize{Height: int32(size.Height), Width: int32(size.Width)}
		}
		if stream.Send(request) != nil {
			return
		}
	}
}

// inputChunk is the size of a message of input, in bytes.
const inputChunk = 32 << 10

// readInput reads input to its end. A separate message reports the end.
func readInput(ctx context.Context, from io.Reader, input chan<- *pb.ExecTaskStreamingIOOperation) {
	for ended := from == nil; ; {
		operation := &pb.ExecTaskStreamingIOOperation{Close: ended}
		if !ended {
			buffer := make([]byte, inputChunk)
			n, err := from.Read(buffer)
			operation.Data = buffer[:n]
			ended = err != nil
		}
		select {
		case input <- operation:
		case <-ctx.Done():
			return
		}
		if operation.GetClose() {
			return
		}
	}
}
