package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// AllocChanges answers GET /v1/node/{id}/allocations?changes. Ours.
type AllocChanges struct {
	// ClusterID is the id of the cluster, or empty if the server does not have it.
	ClusterID string
	// Index is that of the state. The next request names it.
	Index uint64
	// Complete means that Allocs are all allocations of the node that are not client-terminal.
	// Otherwise they are those that the servers have changed since the index of the request, in any
	// status.
	Complete bool
	Allocs   []*Allocation
	// Live are the ids of all allocations of the node that are not client-terminal, sorted. It is nil if the
	// answer is complete, and if no allocation that its client may still run was deleted.
	Live []string `json:",omitzero"`

	// Nameless has the reason for each allocation whose id the reader of the answer cannot read. Its client cannot
	// report it, and cannot find out whether it runs it.
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
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err == nil && list != nil {
		c.Complete = true
		c.readAllocs(list)
		return c, nil
	}
	type others AllocChanges
	w := struct {
		*others
		Allocs []json.RawMessage
	}{others: (*others)(c)}
	if err := json.Unmarshal(text, &w); err != nil {
		return nil, err
	}
	c.readAllocs(w.Allocs)
	return c, nil
}

func (c *AllocChanges) readAllocs(list []json.RawMessage) {
	for i, text := range list {
		if a := readAllocation(text); a.ID != "" {
			c.Allocs = append(c.Allocs, a)
		} else {
			c.Nameless = append(c.Nameless, fmt.Sprintf("allocation %d: %s", i, cmp.Or(a.Unreadable, "the ID is missing")))
		}
	}
}

// readAllocation reads an allocation, or those of its fields that can be read.
func readAllocation(text json.RawMessage) *Allocation {
	whole, part := new(Allocation), new(Allocation)
	err := json.Unmarshal(text, whole)
	if err == nil {
		return whole
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		part.Unreadable = err.Error()
		return part
	}
	why := ""
	for _, key := range slices.Sorted(maps.Keys(members)) {
		before := *part
		if err := readMember(key, members[key], part); err != nil {
			*part = before // the decoder may have stored a part of the value
			why = cmp.Or(why, err.Error())
		}
	}
	part.Unreadable = cmp.Or(why, part.Unreadable, err.Error())
	return part
}

// readMember stores the value of a member of an object in the field with its name.
func readMember(key string, value json.RawMessage, into *Allocation) error {
	text, err := json.Marshal(map[string]json.RawMessage{key: value})
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}
