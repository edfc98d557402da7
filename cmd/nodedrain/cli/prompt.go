package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Errors of a question whose answer is not "y". A script that runs without a terminal must detect them.
var (
	// ErrNoAnswer is the error of a question without an answer: the input of a script may be empty.
	ErrNoAnswer = errors.New("nothing was changed: the input ended before an answer; -yes skips the question")
	// ErrNotConfirmed is the error of any other answer.
	ErrNotConfirmed = errors.New(`nothing was changed: the answer was not "y"; -yes skips the question`)
)

// Confirm prints a question, and the text if the answer is no. After any answer but "y" it returns an error
// that names -yes: every command with a question has that flag.
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
	case lower[0] == 'y' && len(lower) > 1:
		fmt.Fprintln(c.Out, "For confirmation, an exact ‘y’ is required.")
	default:
		fmt.Fprintln(c.Out, "No confirmation detected. For confirmation, an exact 'y' is required.")
	}
	if line == "" {
		return ErrNoAnswer
	}
	return ErrNotConfirmed
}
