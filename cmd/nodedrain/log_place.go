package main

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// The log of a task is a row of files, as in "web.stdout.0" and "web.stdout.1". The node deletes the
// oldest ones. A place in the log is therefore a place in one of the files, and the offset that a request
// needs follows from the sizes of the files.

// logPlace is a place in the log of a task. The zero value is the start of the oldest file.
type logPlace struct {
	file   int // the number of the file
	offset int64
	known  bool
}

// moved returns the place after a frame. The name of the log is that of its files without the number.
// A frame without a file is of the same file as the one before.
func (p logPlace) moved(log string, frame wire.StreamFrame) logPlace {
	if n, is := fileNumber(log, path.Base(frame.File)); is && (!p.known || n != p.file) {
		p = logPlace{file: n, known: true}
	}
	if frame.FileEvent == "file truncated" {
		p.offset = 0
	}
	p.offset += int64(len(frame.Data))
	return p
}

// fileNumber returns the number in the name of a file of a log.
func fileNumber(log, name string) (n int, is bool) {
	digits, is := strings.CutPrefix(name, log+".")
	if !is {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == digits
}

// logFile is a file of a log.
type logFile struct {
	number int
	size   int64
}

// logFiles are the files of a log by number, as the node has them.
type logFiles []logFile

// readLogFiles lists the files of a log.
func readLogFiles(ctx context.Context, a client.Alloc, log string) (files logFiles, err error) {
	infos, err := a.Files(ctx, "alloc/logs")
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		if n, is := fileNumber(log, info.Name); is && !info.IsDir {
			files = append(files, logFile{n, max(info.Size, 0)})
		}
	}
	slices.SortFunc(files, func(a, b logFile) int { return cmp.Compare(a.number, b.number) })
	return files, nil
}

// size is the number of bytes of the log.
func (l logFiles) size() (n int64) {
	for _, f := range l {
		n += f.size
	}
	return n
}

// offset returns the number of bytes before a place. What was deleted counts for none.
func (l logFiles) offset(p logPlace) (n int64) {
	for _, f := range l {
		switch {
		case f.number < p.file:
			n += f.size
		case f.number == p.file:
			n += min(p.offset, f.size)
		}
	}
	return n
}

// place returns the place with a number of bytes before it, in the later one of two files.
func (l logFiles) place(offset int64) (p logPlace) {
	for _, f := range l {
		p = logPlace{file: f.number, offset: min(offset, f.size), known: true}
		if offset < f.size {
			break
		}
		offset -= p.offset
	}
	return p
}
