package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// parseReschedule reads "none", "2/1h:10s", or "unlimited:10s:exponential:5m": how many replacements there may be
// in which interval, the delay, how it grows, and the longest delay.
func parseReschedule(text string) (p cluster.ReschedulePolicy, err error) {
	if text == "none" {
		return p, nil
	}
	p.DelayFunction = cluster.DelayConstant
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 4 {
		return p, fmt.Errorf("%q: write none, 2/1h:10s or unlimited:10s:exponential:5m", text)
	}
	if p.Unlimited = parts[0] == "unlimited"; !p.Unlimited {
		attempts, interval, _ := strings.Cut(parts[0], "/")
		if p.Attempts, err = strconv.Atoi(attempts); err != nil || p.Attempts == 0 {
			return p, fmt.Errorf("%q is no number of attempts", attempts)
		}
		if p.Interval, err = parseDuration(interval); err != nil {
			return p, err
		}
	}
	if p.Delay, err = parseDuration(parts[1]); err != nil {
		return p, err
	}
	if len(parts) > 2 {
		p.DelayFunction = cluster.DelayFunction(parts[2])
		if (p.DelayFunction == cluster.DelayConstant) != (len(parts) == 3) {
			return p, errors.New("a delay that grows has a longest delay, and no other one has")
		}
	}
	if len(parts) > 3 {
		if p.MaxDelay, err = parseDuration(parts[3]); err != nil {
			return p, err
		}
	}
	return p, p.Validate(cluster.JobService)
}

func rescheduleText(p cluster.ReschedulePolicy) string {
	if p == (cluster.ReschedulePolicy{}) {
		return "none"
	}
	text := "unlimited"
	if !p.Unlimited {
		text = fmt.Sprintf("%d/%s", p.Attempts, DurationText(p.Interval))
	}
	text += ":" + DurationText(p.Delay)
	if p.DelayFunction != cluster.DelayConstant {
		text += ":" + string(p.DelayFunction) + ":" + DurationText(p.MaxDelay)
	}
	return text
}
