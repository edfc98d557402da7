// Package logs is a fixture of what may be logged, and how.
package logs

type lines struct{}

func (lines) Debug(string, ...any) {}
func (lines) Info(string, ...any)  {}
func (lines) Warn(string, ...any)  {}

type thing struct {
	logger lines
	config struct{ Logger lines }
	other  lines
}

func (t thing) says(key string, all []any) {
	t.logger.Info("a node drains", "node", 1, "drain", 2)
	t.logger.Info("HTTP is over")
	t.config.Logger.Warn("a node drains", all...)
	t.logger.Info("Node drains")                 // want "begins with a capital"
	t.logger.Debug("")                           // want "says nothing"
	t.config.Logger.Warn("a node drains.")       // want "ends with a full stop"
	t.logger.Info("a node drains", "node")       // want "a key without a value"
	t.logger.Info("a node drains", "node_id", 1) // want "the key .node_id. is not one word"
	t.logger.Info("a node drains", key, 1)       // want "no string literal"
	t.other.Info("Whatever.", "x")               // not a logger by its name
	logger := t.logger
	logger.Info("a node drains", "allocation", 1) // want "the key allocation is called alloc"
}
