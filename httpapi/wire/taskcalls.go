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
