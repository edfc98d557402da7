package measure

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"testing"
)

// ProfileVariable is the environment variable that names the file for the profile that
// [Figure] takes; unset, it takes none. The file must not be there yet: a profile is one of
// one figure.
const ProfileVariable = "NODEDRAIN_BENCH_CPUPROFILE"

// ProfileLabel is the label, of the value "yes", of the samples of what was measured. Those
// of pauses and of the collector have none: go tool pprof -tagfocus=measured leaves them out.
const ProfileLabel = "measured"

// Figure is [Compare] with the pairs of [PairsOf]. If a profile is asked for it runs the
// work once more, so that no ratio is one of work that was profiled.
func Figure(b *testing.B, base, with Side) Ratio {
	b.Helper()
	return profiled(b, with, Compare(PairsOf(b), base, with))
}

// FigureSliced is Figure by [CompareSliced].
func FigureSliced(b *testing.B, base, with Side) Ratio {
	b.Helper()
	return profiled(b, with, CompareSliced(PairsOf(b), base, with))
}

// profiled returns the ratio, and takes a profile if one is asked for.
func profiled(b *testing.B, with Side, r Ratio) Ratio {
	b.Helper()
	if name := os.Getenv(ProfileVariable); name != "" {
		if err := profile(name, with); err != nil {
			b.Fatal(err)
		}
	}
	return r
}

// profile writes a profile of the CPU of one run of the work.
func profile(name string, with Side) (err error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	defer func() {
		if closed := file.Close(); err == nil && closed != nil {
			err = fmt.Errorf("profiling: %w", closed)
		}
	}()
	work := with()
	if err := pprof.StartCPUProfile(file); err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	defer pprof.StopCPUProfile()
	m := Meter{heap: new(heap), labels: pprof.WithLabels(context.Background(), pprof.Labels(ProfileLabel, "yes"))}
	m.heap.collect()
	m.measure(work)
	return nil
}
