package wire

// AgentHealth answers GET /v1/agent/health. Its keys are lower case.
type AgentHealth struct {
	// Client is set if the request asks for a client: there is none in a server.
	Client *Health `json:"client,omitempty"`
	Server *Health `json:"server,omitempty"`
}

// Health says whether a part of an agent works.
type Health struct {
	Ok bool `json:"ok"`
	// Message is "ok", or says what is wrong.
	Message string `json:"message"`
}
