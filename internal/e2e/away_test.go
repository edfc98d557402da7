package e2e

import (
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// cable forwards connections to a server until it is cut. Then both ends receive nothing: a machine that
// lost its network.
type cable struct {
	listener net.Listener
	server   string

	mu    sync.Mutex
	cut   bool
	ends  []net.Conn
	works sync.WaitGroup
}

// newCable starts a cable to a server. The test ends it.
func newCable(t *testing.T, server string) *cable {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	c := &cable{listener: listener, server: strings.TrimPrefix(server, "http://")}
	c.works.Go(c.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		c.setCut(true)
		c.works.Wait()
	})
	return c
}

func (c *cable) accept() {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return // the listener is closed
		}
		far, err := net.Dial("tcp", c.server)
		if err != nil || !c.add(near, far) {
			_ = near.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
			c.works.Go(func() {
				_, _ = io.Copy(pair[0], pair[1]) // the error is only that an end was closed
				_ = pair[0].Close()
			})
		}
	}
}

// add reports whether the cable works, and then keeps the ends of a connection.
func (c *cable) add(ends ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = append(c.ends, ends...)
	if c.cut {
		for _, end := range ends {
			_ = end.Close()
		}
	}
	return !c.cut
}

func (c *cable) setCut(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	for _, end := range c.ends {
		_ = end.Close()
	}
	c.ends = nil
}

// drainOf returns the last drain of a node.
func (s *site) drainOf(node string) *wire.Drain {
	s.t.Helper()
	var answer wire.NodeDrain
	_, err := s.api.Raw().Query("/v1/node/"+node+"/drain", &answer, nil)
	must.NoError(s.t, err)
	must.NotNil(s.t, answer.Drain)
	return answer.Drain
}

// Bug: the client of a node was frozen, or its machine had lost its network, and its drain ended
// complete while the tasks ran. Now the drain ends unconfirmed, and stays so until the client is back
// and reports the ends. The test compares with the processes on the machine.
//
//race:skip its programs do not have the detector
func TestNode_drainedWhileAway(t *testing.T) {
	t.Parallel()
	s := startSite(t, 2, true)
	server := s.address
	cable := newCable(t, server)
	s.address = "http://" + cable.listener.Addr().String()
	remote := s.newNode("n3", true, "")
	s.begin(remote)
	s.address = server
	s.await("the third node", func() bool {
		nodes, _, err := s.api.Nodes().List(nil)
		return err == nil && len(nodes) == 3
	})
	var all []*api.AllocationListStub
	for _, n := range s.nodes {
		s.register("on-"+n.name, 2, n.name)
		all = append(all, s.running("on-"+n.name, 2)...)
	}

	frozen, killed := s.nodes[0], s.nodes[1]
	process := frozen.client.Process
	must.NoError(t, process.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { _ = process.Signal(syscall.SIGCONT) })
	s.crash(killed)
	cable.setCut(true)

	lost := map[string][]string{} // by node
	for _, a := range all {
		lost[a.NodeID] = append(lost[a.NodeID], a.ID)
	}
	s.await("the loss of all allocations", func() bool {
		return !slices.ContainsFunc(s.nodes, func(n *realNode) bool { return s.knownToRun("on-" + n.name) })
	})
	for node, allocs := range lost {
		_, err := s.api.Nodes().UpdateDrainOpts(node, &api.DrainOptions{DrainSpec: &api.DrainSpec{}}, nil)
		must.NoError(t, err)
		s.await("the end of the drain", func() bool {
			n, _, err := s.api.Nodes().Info(node, nil)
			return err == nil && n.DrainStrategy == nil
		})
		record := s.drainOf(node)
		must.Eq(t, "unconfirmed", record.Outcome)
		must.Eq(t, len(allocs), record.Unconfirmed)
		for _, id := range allocs {
			must.Eq(t, 1, s.copies(id, "deaf"), must.Sprint("the task runs on the machine"))
		}
	}

	must.NoError(t, process.Signal(syscall.SIGCONT))
	s.begin(killed)
	cable.setCut(false)
	for node, allocs := range lost {
		s.await("the confirmation by the client", func() bool { return s.drainOf(node).Unconfirmed == 0 })
		for _, id := range allocs {
			must.Zero(t, s.copies(id, "deaf"))
			must.Zero(t, s.copies(id, "obeys"))
			must.SliceEmpty(t, groups(t, id))
		}
		must.Eq(t, "unconfirmed", s.drainOf(node).Outcome)
		must.False(t, s.drainOf(node).ConfirmedAt.IsZero())
	}
	for _, n := range s.nodes {
		s.end(n)
	}
}
