package node

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/drain"
)

// drainFlags are the flags of "nodedrain node drain".
type drainFlags struct {
	enable, disable, monitor bool
	pause, resume            bool
	drain.Strategy
	plan, detach         bool
	keepIneligible, undo bool
	self, yes            bool
	message, key         string
	meta                 metaFlag
	plain                bool
}

func (f *drainFlags) options() cli.Options {
	return slices.Concat(cli.Options{
		cli.Flag(&f.enable, "enable", "Start the drain, or change a running one."),
		cli.Flag(&f.disable, "disable", "Cancel the drain. Lists the allocations that stop nevertheless. The node gets new allocations again, "+
			"unless -keep-ineligible or -undo is set. It is an error if the node does not drain."),
		cli.Flag(&f.monitor, "monitor", "Monitor a running drain."),
		cli.Flag(&f.pause, "pause", "Pause the drain: nothing more leaves until -resume. What is marked already stops all the same. To pause all drains: \"nodedrain drain pause -all\"."),
		cli.Flag(&f.resume, "resume", "Resume the paused drain. The paused time is added to its deadline."),
		cli.Flag(&f.plan, "plan", "Show what the drain would do, as \"nodedrain drain plan\". With -enable the drain begins then, and keeps the plan: see \"nodedrain drain show\"."),
		cli.Heading(""),
	}, f.Options(), cli.Options{
		cli.Flag(&f.keepIneligible, "keep-ineligible", "With -disable: the node gets no new allocations."),
		cli.Flag(&f.undo, "undo", "With -disable: the node is as eligible as before the drain. The output names what has moved and stays where it is."),
		cli.Flag(&f.message, "m MESSAGE", "Reason of the request, kept with the drain."),
		cli.Value(f.meta.set, "meta KEY=VALUE", "Metadata, kept with the drain. May be repeated."),
		cli.Heading(""),
		cli.Value(f.setKey, "idempotency-token KEY", "Apply the request once: a repeated request with the same key changes nothing, even after the drain has ended. "+
			"Without a key every request takes effect, and each restarts the deadline."),
		cli.Heading(""),
		cli.Flag(&f.detach, "detach", "Do not monitor the drain."),
		cli.Flag(&f.plain, "plain", "Print lines only, even on a terminal."),
		selfFlag(&f.self),
		cli.Flag(&f.yes, "yes", "Skip the confirmation. Without it the command asks if NODE is not a whole id, and before it changes a running drain."),
	})
}

// setKey sets the key of the request. An empty one is mostly a variable of a script that is not set, and the
// request would take effect each time.
func (f *drainFlags) setKey(key string) error {
	if strings.TrimSpace(key) == "" {
		return errors.New("the key is empty: without a key the request would not be applied only once")
	}
	f.key = key
	return nil
}

// metaFlag is the metadata of a request: -meta key=value, which may be repeated.
type metaFlag map[string]string

// set adds one pair. A key alone has an empty value, as with Nomad's command.
func (m *metaFlag) set(pair string) error {
	if *m == nil {
		*m = metaFlag{}
	}
	key, value, _ := strings.Cut(pair, "=")
	if key == "" {
		return errors.New("the key is empty: use KEY=VALUE")
	}
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

// conflict returns the error of an invalid combination of flags, or empty. The order and
// the texts of the checks are those of Nomad's command.
func (f *drainFlags) conflict(nodes int) string {
	switch {
	case f.pause || f.resume:
		return f.pauseConflict(nodes)
	case f.monitor && (f.enable || f.disable):
		return "The -monitor flag cannot be used with the '-enable' or '-disable' flags"
	case f.plan && (f.monitor || f.disable):
		return "The -plan flag cannot be used with the '-monitor' or '-disable' flags"
	case !f.monitor && !f.plan && f.enable == f.disable:
		return "Either the '-enable' or '-disable' flag must be set, unless using '-monitor'"
	case nodeOrSelf(nodes, f.self) != "":
		return nodeOrSelf(nodes, f.self)
	case f.undo && !f.disable:
		return "-undo needs -disable"
	case f.undo && f.keepIneligible:
		return "-undo and -keep-ineligible are mutually exclusive"
	case f.disable && f.Given():
		return "-disable can't be combined with flags configuring drain strategy"
	}
	return f.Conflict()
}

// pauseConflict returns the error of a flag that has no meaning with -pause or -resume, or empty.
func (f *drainFlags) pauseConflict(nodes int) string {
	switch {
	case f.pause && f.resume:
		return "-pause and -resume are mutually exclusive"
	case f.enable || f.disable || f.monitor || f.plan:
		return "-pause and -resume can't be combined with -enable, -disable, -monitor or -plan"
	case f.Given():
		return "-pause and -resume can't be combined with flags configuring drain strategy"
	case f.message != "" || len(f.meta) > 0 || f.key != "" || f.keepIneligible || f.undo:
		return "-pause and -resume can't be combined with -m, -meta, -idempotency-token, -keep-ineligible or -undo"
	}
	return nodeOrSelf(nodes, f.self)
}
