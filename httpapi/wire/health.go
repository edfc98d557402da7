package wire

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
