package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonscan"
)

// AllocChanges answers GET /v1/node/{id}/allocations?changes. Ours.
type AllocChanges struct {
	// ClusterID is the id of the cluster, or empty if the server does not have it.
	ClusterID string
	// Index and History identify the state. The next request names them. History is empty below cluster
	// version 9, and from a server of an older release. It also names a later [StateID] of the cluster that
	// the client has.
	Index   uint64
	History string `json:",omitzero"`
	// Complete means that Allocs are all allocations of the node that are not client-terminal, the lost ones
	// whose end nothing confirms, and ended ones whose data the client keeps. Otherwise they are those that the
	// servers have changed since the index of the request, in any status.
	Complete bool
	Allocs   []*Allocation
	// Live are the ids of all allocations of the node that are not client-terminal, and of those whose data the
	// client keeps, sorted. It is nil if the answer is complete, and if no allocation that its client may still run was deleted.
	Live []string `json:",omitzero"`

	// Nameless has the reason for each allocation whose id the reader of the answer cannot read. Its client
	// cannot report it, and cannot detect whether it runs it.
	Nameless []string `json:"-"`
}

// NewNodeAllocations returns the allocations for the client of their node. One with a config that the
// client cannot read has the field Unreadable, and its job has no task groups. A client of an older
// release, which does not read the field, then reports the allocation as failed, because its job
// does not contain its group.
func NewNodeAllocations(allocs []*cluster.Allocation, region string) []*Allocation {
	list := NewAllocations(allocs, region)
	for i, a := range allocs {
		list[i].Metrics = nil // for operators
		if list[i].Unreadable = unreadableGroup(a.Job, a.TaskGroup); list[i].Unreadable != "" {
			without := *list[i].Job
			without.TaskGroups = nil
			list[i].Job = &without
		}
	}
	return list
}

// ReadAllocChanges reads an AllocChanges, or the answer of an older server: the list of all allocations
// of the node, without the id of a cluster and an index. It reads each allocation separately. If a
// field of one cannot be read, the field is zero, and Unreadable is the reason. The error is about the
// answer as a whole.
func ReadAllocChanges(text []byte) (*AllocChanges, error) {
	c := new(AllocChanges)
	if list, err := jsonscan.Elements(text); err == nil {
		c.Complete = true
		c.readAllocs(list)
		return c, nil
	}
	members, err := jsonscan.Members(text)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.Key != "Allocs" || string(m.Value) == "null" {
			if err := readMember(m, c); err != nil {
				return nil, err
			}
			continue
		}
		list, err := jsonscan.Elements(m.Value)
		if err != nil {
			return nil, fmt.Errorf("Allocs: %w", err)
		}
		c.readAllocs(list)
	}
	return c, nil
}

func (c *AllocChanges) readAllocs(list [][]byte) {
	for i, text := range list {
		if a := readAllocation(text); a.ID != "" {
			c.Allocs = append(c.Allocs, a)
		} else {
			c.Nameless = append(c.Nameless, fmt.Sprintf("allocation %d: %s", i, cmp.Or(a.Unreadable, "the ID is missing")))
		}
	}
}

// readAllocation reads an allocation, or those of its fields that can be read.
func readAllocation(text []byte) *Allocation {
	whole := new(Allocation)
	err := json.Unmarshal(text, whole)
	if err == nil {
		return whole
	}
	part := new(Allocation)
	members, splitErr := jsonscan.Members(text)
	if splitErr != nil {
		part.Unreadable = splitErr.Error()
		return part
	}
	why := ""
	for _, m := range members {
		before := *part
		if err := readMember(m, part); err != nil {
			*part = before // the decoder may have stored a part of the value
			why = cmp.Or(why, err.Error())
		}
	}
	part.Unreadable = cmp.Or(why, part.Unreadable, err.Error())
	return part
}

// decoderDepth is the nesting up to which encoding/json reads.
const decoderDepth = 10_000

// readMember stores the value of a member of an object in the field with its name.
func readMember(m jsonscan.Member, into any) error {
	if depth := jsonscan.Depth(m.Value); depth >= decoderDepth {
		return fmt.Errorf("%s is nested %d levels deep", m.Key, depth)
	}
	key, err := json.Marshal(m.Key)
	if err != nil {
		return err
	}
	text := slices.Concat([]byte("{"), key, []byte(":"), m.Value, []byte("}"))
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", m.Key, err)
	}
	return nil
}
