package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// MinCheckTime is the least interval and the least timeout of a check.
const MinCheckTime = time.Second

// CheckType is how a client runs a check.
type CheckType string

// The values of [CheckType].
const (
	// CheckHTTP passes at a status from 200 to 299.
	CheckHTTP CheckType = "http"
	// CheckTCP passes when a connection is accepted.
	CheckTCP CheckType = "tcp"
	// CheckScript runs a command in a task and passes at exit code 0.
	CheckScript CheckType = "script"
)

// CheckOnUpdate is what a check decides about the health of its allocation.
type CheckOnUpdate string

// The values of [CheckOnUpdate].
const (
	// CheckMustPass means that the allocation is healthy only while the check passes. It is the zero value.
	CheckMustPass CheckOnUpdate = ""
	// CheckMayWarn is as CheckMustPass, but a script that exits with 1 passes too.
	CheckMayWarn CheckOnUpdate = "ignore_warnings"
	// CheckIgnored means that the check does not decide.
	CheckIgnored CheckOnUpdate = "ignore"
)

// ServiceCheck is a check of a service. The client of the allocation runs it.
type ServiceCheck struct {
	Name     string
	Type     CheckType
	Interval time.Duration
	Timeout  time.Duration
	OnUpdate CheckOnUpdate `codec:",omitempty"`
	// PortLabel and Address are those of the service if they are empty. Both are for http and tcp.
	PortLabel string `codec:",omitempty"`
	Address   string `codec:",omitempty"`
	// SuccessBeforePassing is how many results in a row make the check pass, and FailuresBeforeCritical how many
	// make it fail. Zero is one.
	SuccessBeforePassing   int `codec:",omitempty"`
	FailuresBeforeCritical int `codec:",omitempty"`
	// Restart is nil if the check restarts nothing.
	Restart *CheckRestart `codec:",omitempty"`

	// TLS, Method, Path, Headers, Body, ServerName and SkipVerify are for http. An empty method is GET.
	TLS        bool                `codec:",omitempty"`
	Method     string              `codec:",omitempty"`
	Path       string              `codec:",omitempty"`
	Headers    map[string][]string `codec:",omitempty"`
	Body       string              `codec:",omitempty"`
	ServerName string              `codec:",omitempty"`
	// SkipVerify accepts every certificate.
	SkipVerify bool `codec:",omitempty"`

	// Command, Args and TaskName are for script. An empty task is that of the service.
	Command  string   `codec:",omitempty"`
	Args     []string `codec:",omitempty"`
	TaskName string   `codec:",omitempty"`
}

// CheckRestart restarts a task whose check fails.
type CheckRestart struct {
	// Limit is how many failures in a row restart the task. It is at least 1.
	Limit int
	// Grace is how long after the start of the task failures do not count.
	Grace time.Duration
	// IgnoreWarnings means that a script that exits with 1 is no failure.
	IgnoreWarnings bool `codec:",omitempty"`
}

// Equal reports whether both checks are the same. An empty map or list equals a nil one.
func (c ServiceCheck) Equal(o ServiceCheck) bool {
	return c.Name == o.Name && c.Type == o.Type && c.Interval == o.Interval && c.Timeout == o.Timeout &&
		c.OnUpdate == o.OnUpdate && c.PortLabel == o.PortLabel && c.Address == o.Address &&
		c.SuccessBeforePassing == o.SuccessBeforePassing && c.FailuresBeforeCritical == o.FailuresBeforeCritical &&
		equalPointed(c.Restart, o.Restart) && c.TLS == o.TLS && c.Method == o.Method && c.Path == o.Path &&
		maps.EqualFunc(c.Headers, o.Headers, slices.Equal[[]string]) && c.Body == o.Body && c.ServerName == o.ServerName &&
		c.SkipVerify == o.SkipVerify && c.Command == o.Command && slices.Equal(c.Args, o.Args) && c.TaskName == o.TaskName
}

func (c ServiceCheck) copy() ServiceCheck {
	c.Args, c.Headers = slices.Clone(c.Args), maps.Clone(c.Headers)
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		c.Headers[name] = slices.Clone(c.Headers[name])
	}
	if c.Restart != nil {
		restart := *c.Restart
		c.Restart = &restart
	}
	return c
}

// CheckTask is the task in which a script check runs and that a check restarts, or empty if the definition names
// none and the group has several. Owner is the task of [TaskGroup.ServiceDefinitions].
func (g *TaskGroup) CheckTask(owner string, s *Service, c *ServiceCheck) string {
	for _, name := range []string{c.TaskName, s.TaskName, owner} {
		if name != "" {
			return name
		}
	}
	if len(g.Tasks) == 1 && g.Tasks[0] != nil {
		return g.Tasks[0].Name
	}
	return ""
}

// ChecksDecide reports whether the checks of services decide about the health of the group's allocations, beside the
// states of their tasks. Drains and rollouts use one verdict, so the checks decide unless each block that the group has
// says task_states. A missing update block is the default one.
func (g *TaskGroup) ChecksDecide() bool {
	byTasks := g.UpdateOf().HealthCheck == HealthTaskStates
	return !byTasks || g.Migrate != nil && g.Migrate.HealthCheck != HealthTaskStates
}

func (c *ServiceCheck) validate(g *TaskGroup, owner string, s *Service) error {
	errs := []error{checkTaskName(g, c.TaskName), checkPortLabel(g, owner, c.PortLabel)}
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Name == "" || CheckID(c.Name) != nil {
		fail("the check needs a name of 1 to %d bytes without control characters", MaxIDBytes)
	}
	if c.Interval < MinCheckTime || c.Timeout < MinCheckTime {
		fail("interval and timeout must be at least %s but found %s and %s", MinCheckTime, c.Interval, c.Timeout)
	}
	if c.SuccessBeforePassing < 0 || c.FailuresBeforeCritical < 0 {
		fail("success_before_passing and failures_before_critical must be >= 0")
	}
	switch c.OnUpdate {
	case CheckMustPass, CheckMayWarn, CheckIgnored:
	default:
		fail("invalid on_update: %q", CutText(string(c.OnUpdate)))
	}
	errs = append(errs, checkAddress("address", c.Address), checkAddress("tls_server_name", c.ServerName))
	if strings.ContainsFunc(c.Method, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }) {
		fail("invalid method: %q", CutText(c.Method))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		if !validHeaderName(name) {
			fail("invalid name of a header: %q", CutText(name))
		}
		if slices.ContainsFunc(c.Headers[name], hasControl) {
			fail("a value of the header %q contains a control character", CutText(name))
		}
	}
	if name := g.CheckTask(owner, s, c); endsEarly(g, name) {
		fail("a check needs a task that runs as long as its allocation, and task %q does not", CutText(name))
	}
	hasPort := s.PortLabel != "" || c.PortLabel != ""
	switch c.Type {
	case CheckHTTP:
		if !hasPort {
			fail("a check of type http needs a port")
		}
		if !strings.HasPrefix(c.Path, "/") {
			fail("the path must begin with / but found %q", CutText(c.Path))
		}
		if strings.ContainsFunc(c.Path, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			fail("the path has a space or a control character: %q", CutText(c.Path))
		} else if !strings.Contains(c.Path, "${") && !validPath(c.Path) {
			fail("no request can have the path %q: write %%25 for %% and %%23 for #", CutText(c.Path))
		}
	case CheckTCP:
		if !hasPort {
			fail("a check of type tcp needs a port")
		}
	case CheckScript:
		if c.Command == "" {
			fail("a check of type script needs a command")
		}
		if strings.Contains(c.Command, "\x00") || slices.ContainsFunc(c.Args, func(arg string) bool { return strings.Contains(arg, "\x00") }) {
			fail("the command or one of its args contains a NUL")
		}
		if g.CheckTask(owner, s, c) == "" {
			fail("a check of type script needs a task, because the group has several")
		}
	default:
		fail("invalid type %q: it must be http, tcp or script", CutText(string(c.Type)))
	}
	if r := c.Restart; r != nil && (r.Limit < 1 || r.Grace < 0) {
		fail("check_restart needs a limit of at least 1 and a grace of at least 0 but found %d and %s", r.Limit, r.Grace)
	}
	return errors.Join(errs...)
}

// validHeaderName reports whether a request can have a header with the name, which may contain a variable.
func validHeaderName(name string) bool {
	outside := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }
	return CheckID(name) == nil && (strings.Contains(name, "${") || !strings.ContainsFunc(name, outside))
}

// hasControl reports whether a value of a header contains a control character other than a tab.
func hasControl(value string) bool {
	return strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// validPath reports whether a request sends the whole path: it has no fragment, and each % begins an escape.
func validPath(path string) bool {
	isHex := func(c byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }
	for i := range len(path) {
		if path[i] == '#' || path[i] == '%' && (i+2 >= len(path) || !isHex(path[i+1]) || !isHex(path[i+2])) {
			return false
		}
	}
	return true
}
