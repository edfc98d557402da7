package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// File is a file that a command writes at its end. It is opened before, so that
// a wrong path fails at once.
type File struct {
	path string
	// to is standard output, or nil; file is then nil.
	to   io.Writer
	file *os.File
	// created means that OpenFile created the file.
	created bool
}

// OpenFile opens a file and keeps its content until the write. For an empty path it
// returns nil.
func OpenFile(path string) (*File, error) {
	if path == "" {
		return nil, nil
	}
	_, missing := os.Lstat(path)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	return &File{path: path, file: file, created: os.IsNotExist(missing)}, nil
}

// OpenPicture opens the file of the flag -svg, or returns nil. If it is "-", which is standard output, the
// report goes to standard error.
func (c *Call) OpenPicture(path string) (*File, error) {
	if path != "-" {
		return OpenFile(path)
	}
	stdout := Underlying(c.Out)
	c.Out = c.Errs
	return &File{path: "standard output", to: stdout}, nil
}

// Write replaces the file's content and closes the file.
func (f *File) Write(write func(io.Writer) error) error {
	if f.to != nil {
		return buffered(f.to, write)
	}
	err := f.empty()
	if err == nil {
		err = buffered(f.file, write)
	}
	if closing := f.file.Close(); err == nil {
		err = closing
	}
	f.file = nil
	if err != nil {
		return fmt.Errorf("writing %s: %w", f.path, err)
	}
	return nil
}

// buffered calls write with a buffered writer.
func buffered(to io.Writer, write func(io.Writer) error) error {
	buffer := bufio.NewWriter(to)
	if err := write(buffer); err != nil {
		return err
	}
	return buffer.Flush()
}

// empty truncates the file if it is a regular one; a device or a pipe has no content.
func (f *File) empty() error {
	info, err := f.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	return f.file.Truncate(0)
}

// Abandon undoes OpenFile if the file was not written. For nil it does nothing.
func (f *File) Abandon() {
	if f == nil || f.file == nil {
		return
	}
	_ = f.file.Close() // nothing was written
	if f.created {
		_ = os.Remove(f.path) // it is empty; another process may have removed it
	}
}

// WriteFile writes a file.
func WriteFile(path string, write func(io.Writer) error) error {
	f, err := OpenFile(path)
	if err != nil {
		return err
	}
	return f.Write(write)
}

// NotUnicode reports whether the environment names a locale that is not UTF-8.
func NotUnicode(getenv func(string) string) bool {
	for _, name := range [...]string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(getenv(name)); locale != "" {
			return !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
		}
	}
	return false
}
