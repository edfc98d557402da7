package host

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/internal/private"
)

// Type is the type of a plugin.
type Type uint8

// The values of [Type], with the numbers of the wire.
const (
	Driver Type = 2
	Device Type = 3
)

// String returns "driver" or "device".
func (t Type) String() string {
	if t == Device {
		return "device"
	}
	return "driver"
}

// The defaults of [Options].
const (
	// DefaultHandshakeTimeout is the longest time from the start of the process to its first line.
	DefaultHandshakeTimeout = time.Minute
	// DefaultCallTimeout is the timeout of each call of a launch.
	DefaultCallTimeout = 10 * time.Second
	// DefaultFingerprintInterval is the shortest time between two reports of health.
	DefaultFingerprintInterval = time.Second
	// DefaultMaxLogBytes is the size at which the log of a plugin is rotated.
	DefaultMaxLogBytes = 16 << 20
)

// maxSocketDir bounds the path of the socket folder. go-plugin adds two names of up to 21 bytes,
// and the kernel takes 107 bytes.
const maxSocketDir = 64

// Group puts the process of a plugin into a control group. It calls start, which forks the process
// with attr.
type Group interface {
	Start(attr *syscall.SysProcAttr, start func() error) error
}

// Options describe a plugin.
type Options struct {
	// Type is the required type of the plugin. Zero permits both: Instance.Info then has the type.
	Type Type
	// Path is the absolute path of its program, and Args are its arguments.
	Path string
	Args []string
	// Config is the plugin's own configuration: a JSON object, or empty.
	Config []byte
	// Env is the whole environment of the process, as NAME=value. It must not contain secrets of
	// the client.
	Env []string
	// SocketDir is the absolute path of a folder for this plugin only, with at most 64 bytes.
	// Launch creates it and deletes all files in it.
	SocketDir string
	// LogFile receives the standard error of the plugin. At MaxLogBytes it is copied to a file of
	// the same name with ".1", and truncated.
	LogFile string
	// MinPort and MaxPort are the range of ports that the plugin may give to tasks. Zero means no
	// ports.
	MinPort, MaxPort uint32
	// HostCgroup: this driver keeps its tasks in the cgroup of their config.
	HostCgroup bool
	// Group is the plugin's control group, or nil.
	Group Group
	// Logger receives starts and ends of the plugin. Nil means no log.
	Logger *slog.Logger

	// The defaults above apply to zero values.
	HandshakeTimeout    time.Duration
	CallTimeout         time.Duration
	FingerprintInterval time.Duration
	MaxLogBytes         int64
}

// withDefaults returns the options with defaults for zero values, or an error if they are not
// valid.
func (o Options) withDefaults() (Options, error) {
	switch {
	case !filepath.IsAbs(o.Path):
		return o, fmt.Errorf("the path of the plugin %q is not absolute", o.Path)
	case !filepath.IsAbs(o.SocketDir):
		return o, fmt.Errorf("the socket folder %q is not absolute", o.SocketDir)
	case len(o.SocketDir) > maxSocketDir:
		return o, fmt.Errorf("the path of the socket folder %q has %d bytes, and may have %d", o.SocketDir, len(o.SocketDir), maxSocketDir)
	case !filepath.IsAbs(o.LogFile):
		return o, fmt.Errorf("the log file %q is not absolute", o.LogFile)
	case o.Type != 0 && o.Type != Driver && o.Type != Device:
		return o, fmt.Errorf("the plugin type %d is unknown", o.Type)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = o.Logger.With("plugin", filepath.Base(o.Path))
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&o.HandshakeTimeout, DefaultHandshakeTimeout},
		{&o.CallTimeout, DefaultCallTimeout},
		{&o.FingerprintInterval, DefaultFingerprintInterval},
	} {
		if *d.value <= 0 {
			*d.value = d.standard
		}
	}
	if o.MaxLogBytes <= 0 {
		o.MaxLogBytes = DefaultMaxLogBytes
	}
	return o, nil
}

// digest identifies the program and the configuration of a process. It uses the identity of the
// program's file and not only its path, because an upgrade may replace the file.
func (o Options) digest() (string, error) {
	info, err := os.Stat(o.Path)
	if err != nil {
		return "", fmt.Errorf("the program of the plugin: %w", err)
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("the program of the plugin: %s has no inode", o.Path)
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d\n%q\n%q\n%q\n%q\n%d %d\n", o.Type, o.Path, o.Args, o.Config, slices.Sorted(slices.Values(o.Env)), o.MinPort, o.MaxPort)
	_, _ = fmt.Fprintf(h, "%d %d %d %d\n", sys.Dev, sys.Ino, info.Size(), info.ModTime().UnixNano())
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// CheckFile returns an error if the client must not run a file: the file or a folder above it belongs
// to a user other than root and the client's user, or other users may write to it. A folder far
// above may be writable if it has the sticky bit. The program of the client may always run.
func CheckFile(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("the plugin: %w", err)
	}
	file, err := os.Stat(real)
	if err != nil {
		return fmt.Errorf("the plugin: %w", err)
	}
	if own, err := os.Stat("/proc/self/exe"); err == nil && os.SameFile(own, file) {
		return nil
	}
	if !file.Mode().IsRegular() || file.Mode()&0o111 == 0 {
		return fmt.Errorf("the plugin %s is not an executable file", path)
	}
	if err := private.CheckAbove(path); err != nil {
		return err
	}
	folder, err := os.Stat(filepath.Dir(real))
	if err != nil {
		return fmt.Errorf("the plugin: %w", err)
	}
	if err := checkOwner(real, file); err != nil {
		return err
	}
	return checkOwner(filepath.Dir(real), folder)
}

func checkOwner(name string, info os.FileInfo) error {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok && sys.Uid != 0 && int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to the user %d, not to root or to the user of the client", name, sys.Uid)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("other users may write to %s: its mode is %s", name, info.Mode())
	}
	return nil
}

// maxText is the longest text of a plugin in an error, in bytes.
const maxText = 1024

// plain returns a text of a plugin for an error message: shortened, and without control characters.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) || r == '\uFFFD' {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = strings.TrimSpace(text)
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
