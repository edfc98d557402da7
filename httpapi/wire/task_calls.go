package wire

// SignalRequest sends a signal to a task.
type SignalRequest struct {
	// Task is the task; empty is every running task of the allocation.
	Task string
	// Signal is the name, as in "SIGHUP".
	Signal string
}

// RestartRequest restarts tasks of an allocation.
type RestartRequest struct {
	// TaskName is the task; empty is every running task.
	TaskName string
	// AllTasks also restarts tasks that have ended.
	AllTasks bool
}

// ExecInput is a message to a command that runs in a task. At most one field is set. A message without
// any only shows that the connection lives.
type ExecInput struct {
	Stdin   *ExecData     `json:"stdin,omitempty"`
	TTYSize *TerminalSize `json:"tty_size,omitempty"`
}

// ExecOutput is a message of a command that runs in a task. At most one of Stdout, Stderr and Result is
// set. A message without any only shows that the connection lives.
type ExecOutput struct {
	Stdout *ExecData `json:"stdout,omitempty"`
	Stderr *ExecData `json:"stderr,omitempty"`
	// Exited means that the command has ended. Result is set then, and no message follows.
	Exited bool        `json:"exited,omitempty"`
	Result *ExecResult `json:"result,omitempty"`
}

// ExecData is a part of a stream, or its end.
type ExecData struct {
	Data  []byte `json:"data,omitempty"`
	Close bool   `json:"close,omitempty"`
}

// ExecResult is the end of a command.
type ExecResult struct {
	ExitCode int `json:"exit_code"`
}

// TerminalSize is in characters.
type TerminalSize struct {
	Height int `json:"height,omitempty"`
	Width  int `json:"width,omitempty"`
}

// FileInfo is a file or a folder of an allocation.
type FileInfo struct {
	// Name is the last element of the path.
	Name  string
	IsDir bool
	// Size is in bytes.
	Size int64
	// FileMode is in the form of ls, as in "-rw-r--r--".
	FileMode    string
	ModTime     Time
	ContentType string `json:",omitempty"`
}

// StreamFrame is a part of a file that is streamed. A frame without any field only shows that the
// connection lives.
type StreamFrame struct {
	// Offset is where Data ends in File.
	Offset int64  `json:",omitempty"`
	Data   []byte `json:",omitempty"`
	// File is the path of the file in the allocation's folder. It may be empty if it is that of the frame
	// before.
	File string `json:",omitempty"`
	// FileEvent is "file deleted" or "file truncated", or empty.
	FileEvent string `json:",omitempty"`
}

// AllocCheckStatuses are the checks of an allocation by their ids.
type AllocCheckStatuses map[string]AllocCheckStatus

// AllocCheckStatus is the state of one check.
type AllocCheckStatus struct {
	ID string
	// Check and Service are the names. Group is the name of the allocation. Task is the task of the service, or
	// empty for a service of the group.
	Check, Service, Group, Task string
	// Mode is "healthiness", or "readiness" for a check that does not decide about the health of the allocation.
	Mode string
	// Status is "pending", "success" or "failure".
	Status string
	// StatusCode is that of the last HTTP answer, or zero.
	StatusCode int
	// Output is that of the last run.
	Output string
	// Timestamp is the time of the last result in seconds since 1970, or zero.
	Timestamp int64
}
