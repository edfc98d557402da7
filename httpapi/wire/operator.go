package wire

// AgentSelf answers GET /v1/agent/self. Its three keys are lower case.
type AgentSelf struct {
	Config AgentConfig                  `json:"config"`
	Member AgentMember                  `json:"member"`
	Stats  map[string]map[string]string `json:"stats"`
}

// AgentConfig is the part of an agent's configuration that clients read.
type AgentConfig struct {
	Region     string
	Datacenter string
	Name       string
	// UI makes the command show no hints of a web interface: there is none.
	UI AgentUI
}

// AgentUI is the web interface, of which there is none.
type AgentUI struct{ ShowCLIHints bool }

// AgentMember is a server.
type AgentMember struct {
	Name string
	// Addr and Port are the address of its raft.
	Addr string
	Port uint16
	Tags map[string]string
	// Status is alive if the server answered, otherwise failed.
	Status string

	ProtocolMin, ProtocolMax, ProtocolCur uint8
	DelegateMin, DelegateMax, DelegateCur uint8
}

// ServerMembers answers GET /v1/agent/members.
type ServerMembers struct {
	ServerName   string
	ServerRegion string
	ServerDC     string
	Members      []AgentMember
}

// Namespace is a namespace in a list.
type Namespace struct {
	Name        string
	Description string
	CreateIndex uint64
	ModifyIndex uint64
}

// NodePool is a node pool in a list. It has a name only.
type NodePool struct {
	Name                   string
	Description            string
	Meta                   map[string]string
	NodeIdentityTTL        int64
	SchedulerConfiguration *Nothing
	CreateIndex            uint64
	ModifyIndex            uint64
}

// RaftConfiguration answers GET /v1/operator/raft/configuration.
type RaftConfiguration struct {
	Servers []RaftServer
	Index   uint64
	// ClusterVersion is the version of the entries that the servers may write. Ours.
	ClusterVersion uint64
	// Cluster is the id of the cluster, or empty if the server is in none or has an older build. Ours.
	Cluster string
}

// RaftServer is one server of the raft configuration.
type RaftServer struct {
	ID           string
	Node         string
	Address      string
	Leader       bool
	Voter        bool
	RaftProtocol string
	// MinVersion and MaxVersion are the cluster versions that the server understands, or
	// zero if it does not answer. Ours.
	MinVersion, MaxVersion uint64
	// LastContact is when a server last had contact with this one, if it does not answer, or null if none
	// has it. The leader has it, at the earliest since it leads. Ours.
	LastContact Time
	// Alive reports whether the server answered the one that answers this. The fields after it mean
	// nothing unless it did. Started is the start of its process and Build its build. AppliedIndex is
	// its newest applied entry: zero from an older server, which does not report these. Behind is how many
	// entries of the leader it has not applied; without a leader, of the newest log. Ours.
	Alive        bool
	Started      Time
	Build        string
	AppliedIndex uint64
	Behind       uint64
	// State is how the server's state compared to those of the others at the raft index
	// StateIndex: same, differs, undecided, or empty if it was not compared. Ours.
	State      string
	StateIndex uint64
}

// Collected answers PUT /v1/system/gc: how many ended rows were deleted. Ours.
type Collected struct {
	Allocations int
	Evaluations int
	Jobs        int
}

// JoinRequest is the body of POST /v1/operator/raft/join: the server to add, or to
// bring up to date. Ours.
type JoinRequest struct {
	ID string
	// Address is host:port of its raft.
	Address string
}

// SearchRequest is the body of POST /v1/search.
type SearchRequest struct {
	Prefix string
	// Context is nodes, jobs, allocs, evals, or all; empty is all.
	Context string
}

// SearchResponse answers a [SearchRequest]: ids by context.
type SearchResponse struct {
	Matches map[string][]string
	// Truncations reports for each context whether there were more matches.
	Truncations map[string]bool
	Index       uint64
	LastContact int64
	KnownLeader bool
	NextToken   string
}

// AgentHealth answers GET /v1/agent/health. Its keys are lower case.
type AgentHealth struct {
	// Client is set if the request is for a client: there is none in a server.
	Client *Health `json:"client,omitempty"`
	Server *Health `json:"server,omitempty"`
}

// Health reports whether a part of an agent works.
type Health struct {
	Ok bool `json:"ok"`
	// Message is "ok", or what is wrong.
	Message string `json:"message"`
}
