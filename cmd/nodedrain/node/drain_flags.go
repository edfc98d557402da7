package node

import (
	"flag"
	"maps"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// drainFlags are the flags of "nodedrain node drain".
type drainFlags struct {
	enable, disable, monitor     bool
	detach, force, noDeadline    bool
	ignoreSystem, keepIneligible bool
	self, yes                    bool
	deadline, message, key       string
	meta                         metaFlag
	plain                        bool
}

func (f *drainFlags) set(set *flag.FlagSet) {
	set.BoolVar(&f.enable, "enable", false, "")
	set.BoolVar(&f.disable, "disable", false, "")
	set.BoolVar(&f.monitor, "monitor", false, "")
	set.BoolVar(&f.detach, "detach", false, "")
	set.StringVar(&f.deadline, "deadline", "", "")
	set.BoolVar(&f.force, "force", false, "")
	set.BoolVar(&f.noDeadline, "no-deadline", false, "")
	set.BoolVar(&f.ignoreSystem, "ignore-system", false, "")
	set.BoolVar(&f.keepIneligible, "keep-ineligible", false, "")
	set.BoolVar(&f.self, "self", false, "")
	set.BoolVar(&f.yes, "yes", false, "")
	set.StringVar(&f.message, "m", "", "")
	set.Var(&f.meta, "meta", "")
	set.StringVar(&f.key, "idempotency-token", "", "")
	set.BoolVar(&f.plain, "plain", false, "")
}

// metaFlag is the metadata of a request: -meta key=value, which may be repeated.
type metaFlag map[string]string

func (m *metaFlag) String() string { return "" }

// Set adds one pair. A key alone has an empty value.
func (m *metaFlag) Set(pair string) error {
	if *m == nil {
		*m = metaFlag{}
	}
	key, value, _ := strings.Cut(pair, "=")
	(*m)[key] = value
	return nil
}

// with returns a copy of the earlier metadata, overlaid with the message and the flag's
// pairs. It is never nil.
func (m metaFlag) with(before map[string]string, messageKey, message string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, before)
	if message != "" {
		all[messageKey] = message
	}
	maps.Copy(all, m)
	return all
}

const (
	// defaultDrainDeadline is the deadline if the flags set none.
	defaultDrainDeadline = time.Hour
	// forceDeadline is the deadline that Nomad's command sends for -force. The servers
	// treat every negative deadline as force.
	forceDeadline = -time.Second
)

// conflict returns the error of an invalid combination of flags, or empty. The order and
// the texts of the checks are those of Nomad's command.
func (f *drainFlags) conflict(nodes int) string {
	strategy := f.deadline != "" || f.force || f.noDeadline
	switch {
	case f.monitor && (f.enable || f.disable):
		return "The -monitor flag cannot be used with the '-enable' or '-disable' flags"
	case !f.monitor && f.enable == f.disable:
		return "Either the '-enable' or '-disable' flag must be set, unless using '-monitor'"
	case f.self && nodes != 0 || !f.self && nodes != 1:
		return "Node ID must be specified if -self isn't being used"
	case f.disable && (strategy || f.ignoreSystem):
		return "-disable can't be combined with flags configuring drain strategy"
	case f.deadline != "" && (f.force || f.noDeadline):
		return "-deadline can't be combined with -force or -no-deadline"
	case f.force && f.noDeadline:
		return "-force and -no-deadline are mutually exclusive"
	}
	return ""
}

// limit returns the deadline of the flags. Its error does not point to the help: the
// flags were parsed.
func (f *drainFlags) limit() (time.Duration, error) {
	switch {
	case f.force:
		return forceDeadline, nil
	case f.noDeadline:
		return 0, nil
	case f.deadline == "":
		return defaultDrainDeadline, nil
	}
	limit, err := time.ParseDuration(f.deadline)
	switch {
	case err != nil:
		return 0, cli.Errorf("Failed to parse deadline %q: %v", f.deadline, err)
	case limit <= 0:
		return 0, cli.Error("A positive drain duration must be given")
	}
	return limit, nil
}
