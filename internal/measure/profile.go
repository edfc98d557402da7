package measure

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"testing"
)

// ProfileVariable is the environment variable with the file for a CPU profile of one figure. Unset
// means no profile. The file must not exist.
const ProfileVariable = "NODEDRAIN_BENCH_CPUPROFILE"

// ProfileLabel is the label of the samples of measured work, with the value "yes". Samples of
// pauses and of the collector have no label: go tool pprof -tagfocus=measured omits them.
const ProfileLabel = "measured"

// Figure is [Compare] with the pairs of [PairsOf]. For a profile it runs the work again, so that
// the profiler does not change the ratio.
func Figure(b *testing.B, base, with Side) Ratio {
	b.Helper()
	return profiled(b, with, Compare(PairsOf(b), base, with))
}

// FigureSliced is Figure with [CompareSliced].
func FigureSliced(b *testing.B, base, with Side) Ratio {
	b.Helper()
	return profiled(b, with, CompareSliced(PairsOf(b), base, with))
}

// profiled takes a profile if [ProfileVariable] is set, and returns the ratio.
func profiled(b *testing.B, with Side, r Ratio) Ratio {
	b.Helper()
	if name := os.Getenv(ProfileVariable); name != "" {
		if err := profile(name, with); err != nil {
			b.Fatal(err)
		}
	}
	return r
}

// profile writes a CPU profile of one run of the work.
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
