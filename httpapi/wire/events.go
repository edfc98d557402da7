package wire

// Events is one line of GET /v1/event/stream: the events of an index. A line without fields means that
// the stream is alive.
type Events struct {
	Index  uint64  `json:",omitempty"`
	Events []Event `json:",omitempty"`
}

// Event is one change.
type Event struct {
	Topic string
	Type  string
	// Key is the id of the row, and FilterKeys are other ids by which a reader can choose the event.
	Key        string
	FilterKeys []string
	Index      uint64
	Payload    EventPayload
}

// EventPayload is the row after the change, in the field of its topic.
type EventPayload struct {
	Node *Node `json:",omitempty"`
	// Allocation has no Job.
	Allocation *Allocation `json:",omitempty"`
	Evaluation *Evaluation `json:",omitempty"`
	Job        *Job        `json:",omitempty"`
	// Deleted: the job was purged.
	Deleted bool `json:",omitempty"`
}
