package main

import (
	"context"
	"os"
	"os/user"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec"
)

// wrongProcesses is the raw_exec driver with a fault of its starts.
type wrongProcesses struct {
	*rawexec.Driver
	change func(*driver.TaskConfig) error
}

func (w wrongProcesses) Start(ctx context.Context, c *driver.TaskConfig) ([]byte, error) {
	if err := w.change(c); err != nil {
		return nil, err
	}
	return w.Driver.Start(ctx, c)
}

// processFaults are the faults of drivers whose tasks have processes.
func processFaults() map[string]func(*driver.TaskConfig) error {
	return map[string]func(*driver.TaskConfig) error{
		"ignores-users": func(c *driver.TaskConfig) error {
			c.User = ""
			return nil
		},
		// It refuses only a user that does not exist.
		"only-looks-users-up": func(c *driver.TaskConfig) error {
			name := c.User
			if c.User = ""; name == "" {
				return nil
			}
			_, err := user.Lookup(name)
			return err
		},
		"gives-its-environment": func(c *driver.TaskConfig) error {
			for _, variable := range os.Environ() {
				if name, value, _ := strings.Cut(variable, "="); c.Env[name] == "" {
					c.Env[name] = value
				}
			}
			return nil
		},
	}
}
