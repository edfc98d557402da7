package main

import (
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// bound is the largest value of a figure.
type bound struct {
	// name is the name of a benchmark, or a common prefix of the names of several.
	name string
	// unit is the bounded metric: a count, or a ratio if it ends in [measure.UnitRatio].
	unit string
	most float64 // inclusive
	// what is the figure's description in the table.
	what string
}

// count reports whether the figure is a count, which is the same on every machine.
func (b bound) count() bool { return !strings.HasSuffix(b.unit, measure.UnitRatio) }

// bounds returns the bounds of all figures in the order of the table.
func bounds() []bound {
	const ratio = measure.UnitRatio
	return []bound{
		{"unconcerned", "wake-ups", 0, "writes that do not concern the drainer: its wake-ups"},
		{"unconcerned", "rows", 0, "writes that do not concern the drainer: rows it reads"},
		{"unconcerned", "feed-bytes", 0, "writes that do not concern the drainer: bytes its subscription allocates"},
		{"hook", "hook-bytes", 0, "writes that do not concern the drainer: bytes that the feed's hook allocates in all of them"},
		{"hook", ratio, 0.02, "writes that do not concern the drainer: the feed's hook, to the write on bare go-memdb"},
		{"changed/rows", "extra-rows", 0, "a changed allocation: rows the drainer reads beyond those of the smallest cluster"},
		{"changed/history", "extra-rows", 0, "a changed allocation: rows the drainer reads for ended allocations"},
		{"changed/cpu", ratio, 3, "a changed allocation: write and step, to the write alone"},
		{"other-writes", ratio, 0.05, "a write that changes no count of its group: keeping the counts, to the write on bare go-memdb"},
		{"journal/record", "bytes", journal.MaxBytes, "the journal of an ended drain with the most events, groups and the longest names"},
		{"journal/record", "bytes-of-all", 64 << 20, "the journals of all records, with such journals"},
		{"journal/marks", "rows", 1, "an entry of 50 marks of one group: rows of journals it writes"},
		{"journal/marks", "bytes", 160, "an entry of 50 marks of one group: bytes of journals it writes"},
		{"journal/stops", "rows", 0, "the stops and ends of 49 marked allocations: rows of journals"},
		{"journal/health", "rows", 100, "100 changes of the health of a group of 1,000: rows of journals"},
		{"journal/health", "bytes", 16 << 10, "100 changes of the health of a group of 1,000: bytes of journals"},
		{"journal/refusals", "rows", 1, "an entry with 100 equal refusals: rows of journals it writes"},
		{"journal/others", "rows", 0, "200 entries that do not concern a drain: rows of journals"},
		{"idle", "writes", 0, "idle drains: writes in ten minutes"},
		{"idle", "steps", 0, "idle drains: steps in ten minutes"},
		{"memory/jobs", "held-ratio", 1, "memory held by the drainer, of 2 KiB a node and 100 B an allocation"},
		{"memory", "held-of-all-ratio", 1, "memory held by the drainer, of 2 KiB a node, 100 B an allocation and 300 B a group"},
		{"month", "held-ratio", 1.05, "memory of a server in the last week of a month of drains, to that in the second week"},
		{"drains/cpu/max_parallel=1", ratio, 1.5, "whole drains at max_parallel 1, entries of 0.25 ms, to applying their entries"},
		{"drains/cpu/max_parallel=10", ratio, 1.4, "whole drains at max_parallel 10, entries of 0.25 ms, to applying their entries"},
		{"drains/cpu/max_parallel=100", ratio, 1.4, "whole drains at max_parallel 100, entries of 0.25 ms, to applying their entries"},
		{"drains/free", "in-flight", drainer.DefaultMaxInFlight, "the drainer's entries in flight"},
		{"drains/crowded", "in-flight", drainer.DefaultMaxInFlight, "the drainer's entries in flight, of 50 ids each"},
		{"drains/lockstep", "rounds", 1, "rounds, to the fewest that the pace allows"},
		{"drains/lockstep", "mark-entries", 1.1, "mark entries, to the fewest that hold the marks"},
		{"drains/lockstep", "end-entries", 1.1, "end entries, to the fewest that hold the ends"},
		{"claims/wake-ups", "wake-ups", 0, "a changed claim of a volume on another node: the drainer's wake-ups"},
		{"claims/wake-ups", "rows", 0, "a changed claim of a volume on another node: rows the drainer reads"},
		{"claims/place", ratio, 2, "placing allocations with a volume among 10,000 claims, to the same with one claim on each node"},
		{"claims/due", "cpu-ratio", 1, "10,000 claims that wait for controllers: processor time to find the calls, of 50 ms"},
		{"claims/list", "cpu-ratio", 1, "10,000 volumes with claims: processor time of GET /v1/volumes, of 200 ms"},
		{"plans", "kept", 0, "a plan of drains: allocations that do not leave"},
		{"plans", "writes", 0, "a plan of drains: writes to the state"},
		{"plans/first", "cpu-ratio", 1, "a plan of 20 of 1,000 nodes: processor time of the first play, of 1 s"},
		{"plans/all", "cpu-ratio", 1, "a plan of 20 of 1,000 nodes: processor time of 39 plays, of 50 s"},
		{"plans/many", "cpu-ratio", 1, "a plan of 1,000 of 10,000 nodes at max_parallel 10: processor time of a play, of 100 s"},
		{"real-clients", ratio, 2, "small simulated worlds: the real client on each node, to simulated clients"},
		// The figures of nodes use tmpfs. Records and the log of the server are synced there.
		{"node/idle", "steps", 0, "idle client on tmpfs: steps of its core"},
		{"node/idle", "cpu-ratio", 0.005, "idle client on tmpfs: processor time, of one core"},
		{"node/idle", "memory-ratio", 1, "idle client on tmpfs: memory for each allocation, of 64 KiB"},
		{"node/stop", "signal-p99-ratio", 1, "raw_exec on tmpfs with fsync: from the write of a stop to the signal, of 50 ms: all but 1 % are faster"},
		{"node/stop", "report-p99-ratio", 1, "raw_exec on tmpfs with fsync: from the exit of a task to the applied report, of 50 ms: all but 1 % are faster"},
		{"node/drain", "time-ratio", 1, "forced drain of a node on tmpfs with fsync, to the last report, of 3 s"},
		{"node/restart", "time-ratio", 1, "killed client on tmpfs with fsync: from its start until it has taken over all tasks, of 2 s"},
		{"node/reattach", "time-ratio", 1, "raw_exec on tmpfs with fsync, after the client was killed: a stop, beside the task's own time, of 0.2 s"},
		{"node/exec", "first-byte-p99-ratio", 1, "exec in a task of raw_exec: from the request to the first byte, of 50 ms: all but 1 % are faster"},
		{"node/logs/alone", "line-p99-ratio", 1, "a followed log: from the write of a line until its follower has it, of 50 ms: all but 1 % are faster"},
		{"node/logs/crowd", "line-p99-ratio", 1, "a log with 1,000 followers: from the write of a line until a follower has it, of 50 ms: all but 1 % are faster"},
		{"node/volume-stop", "overhead-p99-ratio", 1, "an allocation with a volume: from the exit of its task to the applied report, beside the storage plugin's own time, of 0.1 s: all but 1 % are faster"},
		{"node/volume-drain", "time-ratio", 1, "forced drain of a node with 200 mounted volumes, to the report of the storage plugin's end, of 10 s"},
	}
}
