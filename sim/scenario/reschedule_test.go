package scenario

import (
	"testing"

	"github.com/shoenig/test/must"
)

func TestReschedule(t *testing.T) {
	t.Parallel()
	for text, printed := range map[string]string{
		"none": "none", "2/1h:10s": "2/1h:10s", "2/60m:10s:constant": "2/1h:10s",
		"unlimited:10s:exponential:5m": "unlimited:10s:exponential:5m", "3/10m:5s:fibonacci:1m": "3/10m:5s:fibonacci:1m",
	} {
		p, err := parseReschedule(text)
		must.NoError(t, err, must.Sprint(text))
		must.Eq(t, printed, rescheduleText(p))
	}
	for text, why := range map[string]string{
		"":                       "write none, 2/1h:10s or unlimited:10s:exponential:5m",
		"2/1h":                   "write none",
		"0/1h:10s":               `"0" is no number of attempts`,
		"two/1h:10s":             `"two" is no number of attempts`,
		"2:10s":                  "",
		"2/1h:ten":               "ten",
		"2/1h:10s:exponential":   "a delay that grows has a longest delay",
		"2/1h:10s:constant:1h":   "a delay that grows has a longest delay",
		"2/1h:10s:fibonacci:one": "one",
		"unlimited:1s":           "Delay cannot be less than 5s",
	} {
		_, err := parseReschedule(text)
		must.ErrorContains(t, err, why, must.Sprint(text))
	}
}
