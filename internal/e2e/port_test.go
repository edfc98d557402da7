package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"
)

// listenVariable is set in the environment of a task that answers on an address.
const listenVariable = "NODEDRAIN_E2E_LISTEN"

// answer answers each connection to the address with the arguments of the process and its allocation. It runs until
// a signal ends it.
func answer(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprint(c, os.Args[1:], os.Getenv("NOMAD_ALLOC_ID")) // the caller may be gone
		_ = c.Close()
	}
}

// read returns what a process answers on an address, or nothing.
func read(address string) string {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	text, _ := io.ReadAll(c)
	return string(text)
}

// A task listens on the dynamic port from its environment. A drain moves it to the port of another node, and the
// first port is free then. Each node has one port, so that no process of the machine can have it.
//
//race:skip its programs do not have the detector
func TestNode_aDynamicPortMoves(t *testing.T) {
	t.Parallel()
	s := startSite(t, 0, true)
	addresses := map[string]string{}
	for i, address := range freePorts(t, 2) {
		_, port, err := net.SplitHostPort(address)
		must.NoError(t, err)
		n := s.newNode(fmt.Sprint("n", i+1), true, "network_interface = \"lo\"\nmin_dynamic_port = "+port+"\nmax_dynamic_port = "+port+"\n")
		addresses[n.name] = address
		s.begin(n)
	}
	s.await("two nodes with raw_exec", func() bool {
		nodes, _, err := s.api.Nodes().List(nil)
		return err == nil && len(nodes) == 2 && nodes[0].Drivers["raw_exec"] != nil && nodes[0].Drivers["raw_exec"].Healthy &&
			nodes[1].Drivers["raw_exec"] != nil && nodes[1].Drivers["raw_exec"].Healthy
	})
	program, err := os.Executable()
	must.NoError(t, err)
	job := s.service("web", 1)
	group := job.TaskGroups[0]
	group.Networks = []*api.NetworkResource{{Mode: "host", DynamicPorts: []api.Port{{Label: "http"}}}}
	group.Tasks = group.Tasks[:1]
	group.Tasks[0].Config = map[string]any{"command": program, "args": []string{"${NOMAD_PORT_http}"}}
	group.Tasks[0].Env = map[string]string{listenVariable: "${NOMAD_ADDR_http}"}
	registered, _, err := s.api.Jobs().Register(job, nil)
	must.NoError(t, err)
	must.Eq(t, "", registered.Warnings)

	// answers waits until the job's allocation answers on the port that its row has.
	answers := func() *api.Allocation {
		t.Helper()
		var alloc *api.Allocation
		s.await("an answer of the task", func() bool {
			for _, stub := range s.allocs("web") {
				if stub.DesiredStatus != "run" {
					continue
				}
				if alloc, _, err = s.api.Allocations().Info(stub.ID, nil); err != nil || len(alloc.AllocatedResources.Shared.Ports) != 1 {
					return false
				}
				p := alloc.AllocatedResources.Shared.Ports[0]
				return read(net.JoinHostPort(p.HostIP, strconv.Itoa(p.Value))) == fmt.Sprintf("[%d]%s", p.Value, alloc.ID)
			}
			return false
		})
		p := alloc.AllocatedResources.Shared.Ports[0]
		must.Eq(t, addresses[alloc.NodeName], net.JoinHostPort(p.HostIP, strconv.Itoa(p.Value)))
		return alloc
	}
	first := answers()
	_, err = s.api.Nodes().UpdateDrainOpts(first.NodeID, &api.DrainOptions{DrainSpec: &api.DrainSpec{Deadline: 5 * time.Minute}}, nil)
	must.NoError(t, err)
	s.await("the end of the drain", func() bool {
		n, _, err := s.api.Nodes().Info(first.NodeID, nil)
		return err == nil && n.DrainStrategy == nil
	})
	l, err := net.Listen("tcp", addresses[first.NodeName])
	must.NoError(t, err, must.Sprint("the port is free after the drain"))
	must.NoError(t, l.Close())
	second := answers()
	must.NotEq(t, first.NodeID, second.NodeID)
	s.stopJob("web")
}
