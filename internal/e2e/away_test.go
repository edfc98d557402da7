package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/frozen"
)

// link is a machine behind a cable: a network namespace with one end of a veth pair. The namespace ends with
// its last process, and the kernel then removes both ends. A killed run of the tests leaves no process.
type link struct {
	// host is the address of the other end, on which servers listen.
	host string
	// within executes a program behind the cable.
	within []string
}

// newLink connects a new network namespace. It skips the test where the machine does not permit that.
func newLink(t *testing.T) link {
	t.Helper()
	needMachine(t)
	for _, program := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: no machine behind a cable without the program %s", program)
		}
	}
	holder := exec.Command("sleep", "infinity")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := holder.Start(); err != nil {
		t.Skipf("SKIPPED: no machine behind a cable without a network namespace: %v", err)
	}
	t.Cleanup(func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
	})
	l := link{within: []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", holder.Process.Pid)}}
	// The range is for tests of networks. Other runs of this test use the same machine.
	name, net, pair := fmt.Sprintf("nd%08x", rand.Uint32()), rand.IntN(256), 2*rand.IntN(128)
	l.host = fmt.Sprintf("198.18.%d.%d", net, pair)
	guest := fmt.Sprintf("198.18.%d.%d", net, pair+1)
	out, err := exec.Command("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(holder.Process.Pid)).CombinedOutput()
	if err != nil {
		t.Skipf("SKIPPED: no machine behind a cable without a veth pair: %v: %s", err, out)
	}
	command(t, "", "ip", "address", "add", l.host, "peer", guest, "dev", name)
	command(t, "", "ip", "link", "set", name, "up")
	l.ip(t, "address", "add", guest, "peer", l.host, "dev", "eth0")
	l.ip(t, "link", "set", "lo", "up")
	l.set(t, "up")
	return l
}

// ip runs the program ip behind the cable.
func (l link) ip(t testing.TB, args ...string) {
	t.Helper()
	out, err := exec.Command(l.within[0], slices.Concat(l.within[1:], []string{"ip"}, args)...).CombinedOutput()
	must.NoError(t, err, must.Sprint(string(out)))
}

// set sets the machine's end of the cable up or down. Connections then receive nothing, not even their end.
func (l link) set(t testing.TB, state string) {
	t.Helper()
	l.ip(t, "link", "set", "eth0", state)
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

// alive returns those of the allocations of which a process lives: a task, or a child of one.
func alive(t testing.TB, allocs []string) (found []string) {
	for _, pid := range pids(t) {
		env, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ")) // the process may have ended
		for _, id := range allocs {
			if bytes.Contains(env, []byte("NOMAD_ALLOC_ID="+id+"\x00")) && !slices.Contains(found, id) {
				found = append(found, id)
			}
		}
	}
	return found
}

// awayNode is a node whose client is away while the node drains.
type awayNode struct {
	*realNode
	// stops means that the tasks stop when no server has answered the client for stopAfter.
	stops    bool
	deadline time.Duration // of the drain; 0 is none, and negative forces it
	id       string
	allocs   []string
}

const stopAfter = 8 * time.Second

// recordOf returns the record of the node's drain. If the drain has ended, the record must count each allocation
// of which a process lives as unconfirmed. The drain is then not complete.
func recordOf(s *site, n *awayNode) *wire.Drain {
	s.t.Helper()
	record := s.drainOf(n.id)
	live := alive(s.t, n.allocs) // read after the record: what lives now lived then
	if record.Outcome == "" || len(live) == 0 {
		return record
	}
	counted := fmt.Sprintf("%s: %v live, the record is %+v", n.name, live, record)
	must.NotEq(s.t, "complete", record.Outcome, must.Sprint(counted))
	must.Eq(s.t, len(record.UnconfirmedAllocs), record.Unconfirmed, must.Sprint(counted))
	must.SliceContainsSubset(s.t, record.UnconfirmedAllocs, live, must.Sprint(counted))
	return record
}

// startAway starts a node for each case, with a job that runs on it only.
func startAway(s *site, cases []awayNode, within []string) (nodes []*awayNode) {
	s.t.Helper()
	for i := range cases {
		n := &cases[i]
		n.realNode = s.newNode(fmt.Sprint("n", i), true, "")
		n.within = within
		s.begin(n.realNode)
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		s.await("the node "+n.name, func() bool { return nodeOf(s, n.name) != nil })
		n.id = nodeOf(s, n.name).ID
		job, after := s.service("on-"+n.name, 2, n.name), stopAfter
		if n.stops {
			job.TaskGroups[0].Disconnect = &api.DisconnectStrategy{StopOnClientAfter: &after}
		}
		_, _, err := s.api.Jobs().Register(job, nil)
		must.NoError(s.t, err)
	}
	for _, n := range nodes {
		for _, a := range s.running("on-"+n.name, 2) {
			n.allocs = append(n.allocs, a.ID)
		}
	}
	return nodes
}

// Bug: the client of a node was frozen, or its machine had lost its network, and its drain ended complete
// while the tasks ran. Now the drain ends unconfirmed, and stays so until the client is back and reports the
// ends, or until the time of tasks that stop by themselves. The test compares each record with the
// processes on the machine.
//
// A frozen client stops nothing, so the test does not let that time pass for it.
//
//race:skip its programs do not have the detector
func TestNode_drainedWhileAway(t *testing.T) {
	t.Parallel()
	every := os.Getenv(killsVariable) != ""
	const none, force = 0, -1
	for _, fault := range []struct {
		name         string
		cable        bool
		strike, mend func(*site, link, *realNode)
		cases        []awayNode
	}{
		{
			name:   "frozen",
			strike: func(s *site, _ link, n *realNode) { frozen.Stop(s.t, n.client.Process.Pid) },
			mend:   func(s *site, _ link, n *realNode) { must.NoError(s.t, n.client.Process.Signal(syscall.SIGCONT)) },
			cases:  []awayNode{{deadline: none}, {stops: true, deadline: time.Second}},
		},
		{
			name:   "killed",
			strike: func(s *site, _ link, n *realNode) { s.crash(n) },
			mend:   func(s *site, _ link, n *realNode) { s.begin(n) },
			cases:  []awayNode{{deadline: time.Second}, {stops: true, deadline: force}},
		},
		{
			name: "without a network", cable: true,
			strike: func(s *site, l link, _ *realNode) { l.set(s.t, "down") },
			mend:   func(s *site, l link, _ *realNode) { l.set(s.t, "up") },
			cases:  []awayNode{{deadline: force}, {stops: true, deadline: none}},
		},
	} {
		if every {
			fault.cases = nil
			for _, deadline := range []time.Duration{none, time.Second, force} {
				fault.cases = append(fault.cases, awayNode{deadline: deadline}, awayNode{stops: true, deadline: deadline})
			}
		}
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			l := link{host: "127.0.0.1"}
			if fault.cable {
				l = newLink(t)
			}
			s := startQuickAt(t, l.host, 5*time.Second)
			nodes := startAway(s, fault.cases, l.within)
			for _, n := range nodes {
				fault.strike(s, l, n.realNode)
			}
			drainAway(s, nodes)
			for _, n := range nodes {
				if !n.stops || fault.name == "frozen" {
					continue
				}
				s.await("the end of the tasks on "+n.name, func() bool { return recordOf(s, n) != nil && len(alive(s.t, n.allocs)) == 0 })
				if every {
					s.await("the confirmation by time", func() bool { return recordOf(s, n).Unconfirmed == 0 })
				}
			}
			for _, n := range nodes {
				fault.mend(s, l, n.realNode)
			}
			for _, n := range nodes {
				awaitReturn(s, n)
			}
		})
	}
}

// drainAway drains the nodes and waits for the ends of the drains: nothing is confirmed. After a deadline a drain
// does not wait for the loss of what still stops on a node that is down. Bug: the record then counted it as still
// stopping only, for ever.
func drainAway(s *site, nodes []*awayNode) {
	s.t.Helper()
	for _, n := range nodes {
		_, err := s.api.Nodes().UpdateDrainOpts(n.id, &api.DrainOptions{DrainSpec: &api.DrainSpec{Deadline: n.deadline}}, nil)
		must.NoError(s.t, err)
	}
	for _, n := range nodes {
		var record *wire.Drain
		s.await("the end of the drain of "+n.name, func() bool {
			record = recordOf(s, n)
			return record.Outcome != ""
		})
		must.NotEq(s.t, "complete", record.Outcome)
		must.Eq(s.t, len(n.allocs), record.Unconfirmed)
		if n.deadline == 0 {
			must.Eq(s.t, "unconfirmed", record.Outcome)
			must.Zero(s.t, record.StillStopping)
		}
		if !n.stops {
			must.Len(s.t, len(n.allocs), alive(s.t, n.allocs), must.Sprint("the tasks run on the machine"))
		}
	}
}

// awaitReturn waits until the client of a node has confirmed the ends, and ends it.
func awaitReturn(s *site, n *awayNode) {
	s.t.Helper()
	s.await("the confirmation by the client of "+n.name, func() bool { return recordOf(s, n).Unconfirmed == 0 })
	for _, id := range n.allocs {
		s.await("the report of "+id, func() bool {
			a, _, err := s.api.Allocations().Info(id, nil)
			return err == nil && slices.Contains([]string{"complete", "failed"}, a.ClientStatus)
		})
		must.SliceEmpty(s.t, groups(s.t, id))
	}
	must.SliceEmpty(s.t, alive(s.t, n.allocs))
	must.False(s.t, s.drainOf(n.id).ConfirmedAt.IsZero())
	if n.deadline == 0 {
		must.Eq(s.t, "unconfirmed", s.drainOf(n.id).Outcome)
	}
	s.end(n.realNode)
}
