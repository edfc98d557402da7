package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Lengths of an argument that names a node.
const (
	// MinPrefix is the minimum length of an id prefix.
	MinPrefix = 2
	// maxPrefix bounds an id prefix, so that the filter of a longer argument, which is only a name, is
	// not too long for the servers.
	maxPrefix = 256
	// wholeID is the length of a UUID.
	wholeID = 36
)

// NoNode is the error of an argument that names no node.
type NoNode string

func (e NoNode) Error() string {
	return fmt.Sprintf("No node(s) with prefix or id %q found, and no node has this name", string(e))
}

// Find returns the node that a name, an id or a prefix of an id names, and the index of the read.
// doing begins the texts of server errors, as in "Error querying node info".
func (c *Call) Find(idOrName, doing string) (*wire.Node, uint64, error) {
	if len(idOrName) < MinPrefix {
		return nil, 0, Error("Identifier must contain at least two characters.")
	}
	stubs, err := c.Matches(idOrName)
	switch {
	case err != nil:
		return nil, 0, Errorf("%s: %v", doing, err)
	case len(stubs) == 0:
		return nil, 0, NoNode(idOrName)
	case len(stubs) > 1:
		return nil, 0, Errorf("Prefix matched multiple nodes\n\n%s", matchTable(stubs))
	}
	node, answer, err := c.API.Node(c.Ctx, stubs[0].ID, client.Query{})
	if err != nil {
		return nil, 0, Errorf("%s: %v", doing, err)
	}
	return node, answer.Index, nil
}

// Matches returns the nodes with this name and those whose id begins with it. A whole id matches one
// node alone, even if another has that name.
func (c *Call) Matches(idOrName string) ([]*wire.NodeListStub, error) {
	name, quoted := filterText(idOrName)
	if !quoted {
		return nil, nil
	}
	filter := "Name == " + name
	if len(idOrName) <= maxPrefix {
		prefix, _ := filterText("(?i)^" + regexp.QuoteMeta(idOrName))
		filter = "ID matches " + prefix + " or " + filter
	}
	if len(idOrName) == wholeID && uuid.Validate(idOrName) == nil { // the servers find it without a scan of all nodes
		stubs, _, err := c.API.Nodes(c.Ctx, client.NodesQuery{Query: client.Query{Prefix: idOrName}})
		if err != nil || len(stubs) == 1 && stubs[0].ID == idOrName {
			return stubs, err
		}
	}
	stubs, _, err := c.API.Nodes(c.Ctx, client.NodesQuery{Query: client.Query{Filter: filter}})
	if i := slices.IndexFunc(stubs, func(n *wire.NodeListStub) bool { return n.ID == idOrName }); i >= 0 {
		return stubs[i : i+1], nil
	}
	return stubs, err
}

// HasPrefixFold is strings.HasPrefix without regard to case.
func HasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

// filterText returns a text as a literal of a filter. A literal cannot hold both kinds of quotes.
func filterText(text string) (literal string, ok bool) {
	switch {
	case !strings.Contains(text, `"`):
		return strconv.Quote(text), true
	case !strings.Contains(text, "`"):
		return "`" + text + "`", true
	}
	return "", false
}

// Only returns the node of the command line, or with -self the agent's own; see Find.
func (c *Call) Only(doing string) (*wire.Node, error) {
	id, err := c.Named()
	if err != nil {
		return nil, err
	}
	node, _, err := c.Find(id, doing)
	return node, err
}

// matchTable lists the nodes that match a prefix.
func matchTable(stubs []*wire.NodeListStub) *Table {
	t := NewTable("ID", "DC", "Name", "Class", "Drain", "Eligibility", "Status")
	for _, n := range stubs {
		t.Row(n.ID, n.Datacenter, n.Name, n.NodeClass, fmt.Sprint(n.Drain), n.SchedulingEligibility, n.Status)
	}
	return t
}

// ownNode returns the id of the node of the agent that answers.
func (c *Call) ownNode() (string, error) {
	self, err := c.API.Servers().Self(c.Ctx)
	switch {
	case err != nil:
		return "", Errorf("Error querying agent info: failed querying self endpoint: %v", err)
	case self.Stats["client"]["node_id"] == "":
		return "", Error("Nomad not running in client mode")
	}
	return self.Stats["client"]["node_id"], nil
}

// Named returns the node of the command line: the argument, or without one the agent's
// own node.
func (c *Call) Named() (string, error) {
	if len(c.Args) > 0 {
		return c.Args[0], nil
	}
	return c.ownNode()
}
