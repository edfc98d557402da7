package scenario_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// setups begin the drawn files. They differ in what they allow.
func setups() []string {
	return []string{
		"# why\ncluster servers=3\nnode n1..n12\njob web1..web9\n",
		"# why\n#\n#   and how\nseed 3\ncluster clients=real hold=1m\nnode n1..n3 containers\nnode n4..n12\n" +
			"volume data1..data3 plugin=disks access=multi-node-reader-only\nvolume own[0..2] plugin=disks\njob web1..web9 stopped\n",
	}
}

// samples are lines of the language by directive: those of the file with every word, and some more.
func samples(t testing.TB) map[string][][]string {
	lines := strings.Split(string(everything(t))+`
node m1,m3,m4 class=b
job app count=2 max-parallel=1 volumes=data1:ro,own[] plugin=disks:controller:unstaged
job app group-shutdown=1m stop-away=5m restart=1s prestart poststart sidecar poststop
alloc web[0..1] on=n1 age=1ns
alloc web on=n1
alloc web[0..1] on=n5
alloc web on=n5
client * worsen=1s..2s recover=never copy=1h0m0.5s
client * crash=5s..1m
job app service check=1s/2s
job app service check=1m/2s:restart:1/0s
job app service
at 1h target web fails replacements
at 1h target @n1 hangs
at 1h target * passes
at 1h edit app service=3
at 1h volume own[0] detach on=n1 force
at 1h volume data1 deregister force
at 1h volume data2 register
at +1ms elect s3
run for=9h calm=8h cut-servers=s2 cut-nodes=n1..n3 drained
`, "\n")
	samples := map[string][][]string{}
	for _, line := range lines {
		if words := strings.Fields(line); len(words) > 1 && words[0] != "#" && words[0] != "cluster" {
			samples[words[0]] = append(samples[words[0]], words)
		}
	}
	return samples
}

// drawFile draws a valid file. Its lines have the parameters of several samples. Consecutive lines
// have consecutive numbers in their names, so that they can be joined. A line that is not valid after
// those before it is left out.
func drawFile(t *rapid.T, samples map[string][][]string) string {
	text := rapid.SampledFrom(setups()).Draw(t, "setup")
	for _, directive := range []string{"drainer", "node", "job", "group", "job", "alloc", "client", "at", "run"} {
		var words []string
		for i := range rapid.IntRange(0, 20).Draw(t, "lines") {
			if words == nil || rapid.IntRange(0, 2).Draw(t, "unlike") == 0 {
				words = slices.Clone(rapid.SampledFrom(samples[directive]).Draw(t, "line"))
				for _, w := range rapid.SampledFrom(samples[directive]).Draw(t, "other")[2:] {
					if rapid.IntRange(0, 3).Draw(t, "more") == 0 && !slices.Contains(words, w) {
						words = append(words, w)
					}
				}
			}
			number := fmt.Sprint(1 + i%9)
			line := strings.NewReplacer("web", "web"+number, "app", "app"+number, "n1", "n"+number).Replace(strings.Join(words, " ")) + "\n"
			if _, _, err := scenario.Parse("case.drain", strings.NewReader(text+line)); err == nil {
				text += line
			}
		}
	}
	return text + rapid.SampledFrom([]string{"", "----\none\n\n  two\n", "----\n----\nn1 complete\n"}).Draw(t, "expected")
}
