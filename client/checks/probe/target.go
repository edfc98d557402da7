package probe

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"

	"github.com/seed-f9cf0b39/nodedrain/client/checks"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Target is a check whose variables are replaced.
type Target struct {
	check *cluster.ServiceCheck
	// address is that of the port, as host:port. It is empty for a script.
	address, path, body, serverName string
	header                          http.Header
	command                         []string
}

// Resolve replaces the variables of a check, and finds the address of its port. node is the address of the node, for
// a port that is a number. The error is for operators.
func Resolve(d checks.Definition, ports *cluster.AssignedPorts, node string, interpolate func(string) (string, error)) (Target, error) {
	t := Target{check: d.Check}
	var wrong error
	replace := func(text string) string {
		value, err := interpolate(text)
		if err != nil && wrong == nil {
			wrong = err
		}
		return value
	}
	if d.Check.Type == cluster.CheckScript {
		t.command = []string{replace(d.Check.Command)}
		for _, arg := range d.Check.Args {
			t.command = append(t.command, replace(arg))
		}
		return t, wrong
	}
	host := replace(cmp.Or(d.Check.Address, d.Service.Address))
	label := cmp.Or(d.Check.PortLabel, d.Service.PortLabel)
	ip, port, is := ports.ServicePort(d.Owner, d.Service.TaskName, label)
	if !is {
		return t, fmt.Errorf("the allocation has no port with the label %q", label)
	}
	if host = cmp.Or(host, ip, node); host == "" {
		return t, fmt.Errorf("the node has no address for port %d", port)
	}
	t.address = net.JoinHostPort(host, strconv.Itoa(port))
	t.path, t.body, t.serverName = replace(d.Check.Path), replace(d.Check.Body), replace(d.Check.ServerName)
	t.header = http.Header{}
	for _, name := range slices.Sorted(maps.Keys(d.Check.Headers)) {
		for _, value := range d.Check.Headers[name] {
			t.header.Add(replace(name), replace(value))
		}
	}
	return t, wrong
}
