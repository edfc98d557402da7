package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// openLog opens the log of a plugin to append to it. A large log is rotated first.
func openLog(path string, most int64) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("the log of the plugin: %w", err)
	}
	if err := rotateLog(path, most); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the log of the plugin: %w", err)
	}
	return file, nil
}

// rotateLog copies a large log to the file with ".1" and truncates it. It cannot rename the file,
// because the plugin does not open the file again. Lines that the plugin writes meanwhile may be
// lost.
func rotateLog(path string, most int64) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() < most {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the log of the plugin: %w", err)
	}
	from, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("the log of the plugin: %w", err)
	}
	defer from.Close()
	to, err := os.OpenFile(path+".1", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("the log of the plugin: %w", err)
	}
	// Keep the end, which has the newest lines. A full disk must not prevent the truncation.
	_, copied := io.Copy(to, io.NewSectionReader(from, max(0, info.Size()-most), most))
	return errors.Join(copied, to.Close(), from.Truncate(0))
}
