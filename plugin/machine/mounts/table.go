package mounts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mount is one line of the mount table.
type Mount struct {
	// Point is where it is mounted, an absolute path.
	Point string
	// Device is the number of the file system, such as "8:1". Root is the part of the file system that
	// is mounted, "/" if it is all of it.
	Device, Root string
	// ReadOnly: nothing can be written at this mount.
	ReadOnly bool
	// Type and Source are what the file system states, such as "ext4" and "/dev/sda1". Options are those
	// of the file system, such as the controllers of a control group.
	Type, Source string
	Options      []string
}

// Table is the mount table, in the order of the kernel. A later mount hides an earlier one with the same
// point.
type Table []Mount

// Read returns the mount table that this process sees.
func Read() (Table, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("the mount table: %w", err)
	}
	defer f.Close()
	return Parse(f)
}

// maxLine bounds a line: the kernel writes paths of at most 4,096 bytes, of which each may need four.
const maxLine = 1 << 17

// Parse reads a mount table in the format of /proc/PID/mountinfo. The error names the
// lines that it cannot read. The table contains the others, up to a line that is too long.
func Parse(r io.Reader) (Table, error) {
	var t Table
	var unreadable error
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		if m, err := parse(lines.Text()); err != nil {
			unreadable = errors.Join(unreadable, fmt.Errorf("the mount table: line %d: %w", n, err))
		} else {
			t = append(t, m)
		}
	}
	if err := lines.Err(); err != nil {
		unreadable = errors.Join(unreadable, fmt.Errorf("the mount table: %w", err))
	}
	return t, unreadable
}

// parse reads "36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw".
func parse(line string) (Mount, error) {
	fields := strings.Split(line, " ")
	end := slices.Index(fields, "-")
	if end < 6 || len(fields) < end+4 {
		return Mount{}, errors.New("it has too few fields")
	}
	return Mount{
		Device: fields[2], Root: unescape(fields[3]), Point: unescape(fields[4]), ReadOnly: slices.Contains(strings.Split(fields[5], ","), "ro"),
		Type: unescape(fields[end+1]), Source: unescape(fields[end+2]), Options: strings.Split(fields[end+3], ","),
	}, nil
}

// unescape replaces what the kernel writes for blanks and backslashes: a backslash and three octal digits.
func unescape(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) && octal(text[i+1]) && octal(text[i+2]) && octal(text[i+3]) {
			out.WriteByte((text[i+1]-'0')<<6 | (text[i+2]-'0')<<3 | (text[i+3] - '0'))
			i += 3
			continue
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

func octal(c byte) bool { return '0' <= c && c <= '7' }

// Has reports whether something is mounted at a clean, absolute path without symbolic links.
func (t Table) Has(path string) bool {
	return slices.ContainsFunc(t, func(m Mount) bool { return m.Point == path })
}

// Below returns the points at a path or below it, the deepest first.
func (t Table) Below(path string) []string {
	var points []string
	for _, m := range t {
		if within(m.Point, path) {
			points = append(points, m.Point)
		}
	}
	slices.SortStableFunc(points, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	return points
}

// within reports whether a path is another one, or below it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(filepath.Clean(path), filepath.Clean(dir))
	return ok && (rest == "" || rest[0] == '/' || filepath.Clean(dir) == "/")
}
