package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// output is a file that is to be written when something long has ended. It is opened
// before that begins: whoever has mistyped its name learns so at once.
type output struct {
	path string
	// to is standard output, or nil; file is then nil.
	to   io.Writer
	file *os.File
	// made says that the file was not there before.
	made bool
}

// openOutput opens a file to be written, and leaves what stands in it until then. An empty
// path is no output, which is nil.
func openOutput(path string) (*output, error) {
	if path == "" {
		return nil, nil
	}
	_, missing := os.Lstat(path)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	return &output{path: path, file: file, made: os.IsNotExist(missing)}, nil
}

// write replaces what stands in the file, and closes it.
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

// buffered has something written in few writes.
func buffered(to io.Writer, write func(io.Writer) error) error {
	buffer := bufio.NewWriter(to)
	if err := write(buffer); err != nil {
		return err
	}
	return buffer.Flush()
}

// empty takes out what stands in the file; a device or a pipe has nothing to be taken out.
func (o *output) empty() error {
	about, err := o.file.Stat()
	if err != nil || !about.Mode().IsRegular() {
		return err
	}
	return o.file.Truncate(0)
}

// abandon leaves things as they were, if the file was not written. Nil does nothing.
func (o *output) abandon() {
	if o == nil || o.file == nil {
		return
	}
	_ = o.file.Close() // nothing was written
	if o.made {
		_ = os.Remove(o.path) // it is empty, and somebody else may have taken it away
	}
}

// created writes a file.
func created(path string, write func(io.Writer) error) error {
	o, err := openOutput(path)
	if err != nil {
		return err
	}
	return o.write(write)
}

// reporter is a writer that remembers what went wrong with it first: a command that has
// found something and could not say so has failed.
type reporter struct {
	to  io.Writer
	err error
}

func (r *reporter) Write(text []byte) (int, error) {
	n, err := r.to.Write(text)
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("printing the report: %w", err)
	}
	return n, err
}

// beneath is what a report is written to.
func beneath(out io.Writer) io.Writer {
	if r, is := out.(*reporter); is {
		return r.to
	}
	return out
}

// quoted is a word as a shell reads it back.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:,@%+=", r)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// notUnicode reports whether the locale of the environment is one in which letters and
// signs alone can be shown. If none is named it may be any.
func notUnicode(getenv func(string) string) bool {
	for _, name := range [...]string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(getenv(name)); locale != "" {
			return !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
		}
	}
	return false
}
