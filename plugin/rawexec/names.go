package rawexec

import (
	"fmt"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec/shim"
)

// defaultSignal is the signal of a stop without a signal.
const defaultSignal = syscall.SIGINT

// parseSignal returns the signal of a name such as "SIGTERM" or "term".
func parseSignal(name string) (syscall.Signal, error) {
	if name == "" {
		return defaultSignal, nil
	}
	full := strings.ToUpper(name)
	if !strings.HasPrefix(full, "SIG") {
		full = "SIG" + full
	}
	if n := unix.SignalNum(full); n != 0 {
		return n, nil
	}
	return 0, fmt.Errorf("unknown signal %q", name)
}

// lookUpUser returns the user of a name or number with the groups, or nil for the driver's own
// user.
func lookUpUser(name string) (*shim.User, error) {
	if name == "" {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		byID, failed := user.LookupId(name)
		if failed != nil {
			return nil, fmt.Errorf("user %q: %w", name, err)
		}
		u = byID
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("groups of user %q: %w", name, err)
	}
	numbers := make([]uint32, 0, len(groups)+2)
	for _, text := range append([]string{u.Uid, u.Gid}, groups...) {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %q: %w", name, err)
		}
		numbers = append(numbers, uint32(n))
	}
	if own := os.Getuid(); own != 0 {
		if int(numbers[0]) == own {
			return nil, nil
		}
		return nil, fmt.Errorf("user %q: only a driver that runs as root can change the user", name)
	}
	return &shim.User{UID: numbers[0], GID: numbers[1], Groups: numbers[2:]}, nil
}

// parseLog reads a log path of a task.
func parseLog(path string) (shim.Log, error) {
	if path == "" || filepath.IsAbs(path) {
		return shim.Log{Path: path}, nil
	}
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "rotate" || u.Opaque != "" || u.Host != "" || !filepath.IsAbs(u.Path) {
		return shim.Log{}, fmt.Errorf("log path %q is neither absolute nor rotate:/PATH?max_files=N&max_file_size=BYTES", path)
	}
	l := shim.Log{Path: u.Path, Rotate: true}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return shim.Log{}, fmt.Errorf("log path %q: %w", path, err)
	}
	for key := range query {
		n, err := strconv.ParseInt(query.Get(key), 10, 63)
		switch {
		case err != nil || n < 1:
			return shim.Log{}, fmt.Errorf("log path %q: %s is not a positive number", path, key)
		case key == "max_files":
			l.MaxFiles = int(min(n, 1<<20))
		case key == "max_file_size":
			l.MaxFileSize = n
		default:
			return shim.Log{}, fmt.Errorf("log path %q: unknown key %q", path, key)
		}
	}
	return l, nil
}
