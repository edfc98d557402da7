package sim

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// output is a file that a long run writes at its end. It is opened before the run, so that
// a wrong path fails at once.
type output struct {
	path string
	// to is standard output, or nil; file is then nil.
	to   io.Writer
	file *os.File
	// created means that openOutput created the file.
	created bool
}

// openOutput opens a file and keeps its content until the write. For an empty path it
// returns nil.
func openOutput(path string) (*output, error) {
	if path == "" {
		return nil, nil
	}
	_, missing := os.Lstat(path)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	return &output{path: path, file: file, created: os.IsNotExist(missing)}, nil
}

// write replaces the file's content and closes the file.
func (o *output) write(write func(io.Writer) error) error {
	if o.to != nil {
		return buffered(o.to, write)
	}
	err := o.empty()
	if err == nil {
		err = buffered(o.file, write)
	}
	if closing := o.file.Close(); err == nil {
		err = closing
	}
	o.file = nil
	if err != nil {
		return fmt.Errorf("writing %s: %w", o.path, err)
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
func (o *output) empty() error {
	info, err := o.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	return o.file.Truncate(0)
}

// abandon undoes openOutput if the file was not written. For nil it does nothing.
func (o *output) abandon() {
	if o == nil || o.file == nil {
		return
	}
	_ = o.file.Close() // nothing was written
	if o.created {
		_ = os.Remove(o.path) // it is empty; another process may have removed it
	}
}

// writeFile writes a file.
func writeFile(path string, write func(io.Writer) error) error {
	o, err := openOutput(path)
	if err != nil {
		return err
	}
	return o.write(write)
}

// quoted quotes a word for a shell.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:,@%+=", r)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// notUnicode reports whether the environment names a locale that is not UTF-8.
func notUnicode(getenv func(string) string) bool {
	for _, name := range [...]string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(getenv(name)); locale != "" {
			return !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
		}
	}
	return false
}
