package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"syscall"
)

// fileLog is the log: a file that all servers open. An entry is a line of JSON. Only
// the server that holds the lock of the file writes. The kernel releases the lock when that server
// dies, however it dies, so there are never two writers.
type fileLog struct {
	file *os.File
	end  int64 // of the entries that this server has read
}

// torn is the first line of each writer. It ends the line in which the writer before may have died.
// Bytes in the file never change, because other servers may read them at this moment.
const torn = " torn\n"

// lock reports whether this server is the writer from now on.
func (l *fileLog) lock() (writer bool, err error) {
	if syscall.Flock(int(l.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false, nil
	}
	_, err = l.file.WriteString(torn)
	return true, err
}

// next reads the next entry. It returns nil if there is none. A last line without its end is no
// entry: its writer is at work, or died there.
func (l *fileLog) next() (*entry, error) {
	line, err := bufio.NewReader(io.NewSectionReader(l.file, l.end, math.MaxInt64-l.end)).ReadBytes('\n')
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the log: %w", err)
	case bytes.HasSuffix(line, []byte(torn)):
		l.end += int64(len(line))
		return l.next()
	}
	e := new(entry)
	if err := json.Unmarshal(line, e); err != nil {
		return nil, fmt.Errorf("the entry of the log at byte %d is damaged: %w", l.end, err)
	}
	l.end += int64(len(line))
	return e, nil
}

// append writes an entry at the end of the file, and waits until the disk has it. After an
// error the entry may be in the log or not.
func (l *fileLog) append(e *entry) error {
	data, err := json.Marshal(e)
	if err == nil {
		_, err = l.file.Write(append(data, '\n'))
	}
	if err == nil {
		err = l.file.Sync()
	}
	return err
}
