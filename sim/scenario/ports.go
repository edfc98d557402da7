package scenario

import (
	"fmt"
	"strconv"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Port is a port that a group requests: the number of a static one, or zero for a dynamic one.
type Port int

// dynamic is the word for a dynamic port.
const dynamic = "dynamic"

func (p Port) text() string {
	if p == 0 {
		return dynamic
	}
	return strconv.Itoa(int(p))
}

// parsePort reads one of "80,dynamic".
func parsePort(before []Port, text string) (Port, error) {
	if text == dynamic {
		return 0, nil
	}
	n, err := parseNumber(text, 1, cluster.MaxPort)
	for _, other := range before {
		if err == nil && int64(other) == n {
			return 0, fmt.Errorf("port %d occurs twice", n)
		}
	}
	return Port(n), err
}

// parsePorts reads a range of dynamic ports: "20000-20009".
func parsePorts(text string) (r cluster.PortRange, err error) {
	all, err := cluster.ParsePortRanges(text)
	if err != nil {
		return r, err
	}
	if len(all) != 1 {
		return r, fmt.Errorf("%q must be one range of ports", text)
	}
	return all[0], nil
}
