package cli

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// ErrNoAnswer is the error of a question without an answer: the input of a script may be empty.
var ErrNoAnswer = fmt.Errorf("the input ended before an answer: %w", ExitCode(0))

// Confirm prints a question, and the text if the answer is no. After any answer but "y" it prints a message
// and returns an exit code: 0 for no or for a yes that is not exactly "y", otherwise 1.
func (c *Base) Confirm(question, ifNot string) error {
	fmt.Fprint(c.Out, question+" ")
	line, err := bufio.NewReader(c.In).ReadString('\n')
	if err != nil && err != io.EOF {
		return Errorf("Failed to parse answer: %v", err)
	}
	answer := strings.TrimSpace(line)
	switch lower := strings.ToLower(answer); {
	case answer == "y":
		return nil
	case lower == "" || lower[0] == 'n':
		fmt.Fprintln(c.Out, ifNot)
		if line == "" {
			return ErrNoAnswer
		}
		return ExitCode(0)
	case lower[0] == 'y' && len(lower) > 1:
		fmt.Fprintln(c.Out, "For confirmation, an exact ‘y’ is required.")
		return ExitCode(0)
	}
	fmt.Fprintln(c.Errs, "No confirmation detected. For confirmation, an exact 'y' is required.")
	return ExitCode(1)
}
