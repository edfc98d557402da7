package shim

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/socket"
)

// patience is how long a shim waits for a request, and a client for an answer.
const patience = 2 * time.Second

// maxLine is the largest request or response, in bytes.
const maxLine = 4096

// serve answers requests one after the other. Each connection has one request.
func (s *shim) serve(listener *net.UnixListener) {
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			s.log.Error("the shim accepts no more requests", "error", err)
			return
		}
		s.answering.Lock()
		if err := s.answer(conn); err != nil {
			s.log.Warn("a request failed", "error", err)
		}
		_ = conn.Close()
		s.answering.Unlock()
	}
}

func (s *shim) answer(conn *net.UnixConn) error {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if err := socket.CheckPeer(conn); err != nil {
		return err
	}
	out := response{Protocol: Protocol}
	var in request
	err := readLine(conn, &in)
	if err == nil {
		err = s.do(in)
	}
	if err != nil {
		out.Error = err.Error()
	}
	b, encode := json.Marshal(out)
	if encode != nil {
		return encode
	}
	_, err = conn.Write(append(b, '\n'))
	return err
}

func (s *shim) do(in request) error {
	switch {
	case in.Protocol != Protocol:
		return fmt.Errorf("the request has protocol %d, and this shim speaks %d", in.Protocol, Protocol)
	case in.Operation == opSignal && in.Signal > 0:
		return s.signal(syscall.Signal(in.Signal))
	case in.Operation == opStop && in.Signal > 0:
		return s.stop(unix.Signal(in.Signal), in.Grace)
	case in.Operation == opKill:
		s.kill()
		return nil
	}
	return fmt.Errorf("unknown operation %q with signal %d", in.Operation, in.Signal)
}

// readLine decodes a line of JSON with at most maxLine bytes.
func readLine(r io.Reader, into any) error {
	line, err := bufio.NewReaderSize(io.LimitReader(r, maxLine), 512).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read a line: %w", err)
	}
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("decode %.100q: %w", line, err)
	}
	return nil
}
