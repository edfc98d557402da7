package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// callLog is the log of the strict mode: a line of JSON for each call. Several programs may append to
// one file.
type callLog struct {
	mu   sync.Mutex
	file *os.File // guarded by mu
}

// openLog opens or creates a log. If a process died while it wrote a line, openLog ends the line.
func openLog(path string) (*callLog, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of calls: %w", err)
	}
	last := make([]byte, 1)
	if size, err := file.Seek(0, io.SeekEnd); err == nil && size > 0 {
		if _, err := file.ReadAt(last, size-1); err == nil && last[0] != '\n' {
			_, _ = file.WriteString("\n") // the next write has the same error
		}
	}
	return &callLog{file: file}, nil
}

// append adds a line. The line is durable when append returns.
func (l *callLog) append(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.file.Write(append(line, '\n'))
	return errors.Join(err, l.file.Sync())
}
