package scripted

import "fmt"

// Signal is a signal's number on Linux.
type Signal int

// The signals that the doubles support.
const (
	SIGHUP  Signal = 1
	SIGINT  Signal = 2
	SIGQUIT Signal = 3
	SIGKILL Signal = 9
	SIGUSR1 Signal = 10
	SIGUSR2 Signal = 12
	SIGTERM Signal = 15
)

// String returns the name of the signal, such as "SIGTERM".
func (s Signal) String() string {
	switch s {
	case SIGHUP:
		return "SIGHUP"
	case SIGINT:
		return "SIGINT"
	case SIGQUIT:
		return "SIGQUIT"
	case SIGKILL:
		return "SIGKILL"
	case SIGUSR1:
		return "SIGUSR1"
	case SIGUSR2:
		return "SIGUSR2"
	case SIGTERM:
		return "SIGTERM"
	}
	return fmt.Sprintf("signal %d", int(s))
}

// ParseSignal returns the signal of a name, or that of fallback for the empty name.
func ParseSignal(name string, fallback Signal) (Signal, error) {
	if name == "" {
		return fallback, nil
	}
	for _, s := range []Signal{SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGUSR1, SIGUSR2, SIGTERM} {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("unknown signal %q", name)
}
