package cli

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Answers to a confirmation prompt.
const (
	AnswerYes = iota
	answerNo
	// answerAlmost is a yes other than the required "y".
	answerAlmost
	answerOther
	// answerNone is the end of the input before any answer.
	answerNone
)

// ErrNoAnswer is the error of a question without an answer: the input of a script may be empty.
var ErrNoAnswer = fmt.Errorf("the input ended before an answer: %w", ExitCode(0))

// Prompt prints a question and reads one line. The end of the input is an empty line.
func (c *Base) Prompt(question string) (answer int, err error) {
	fmt.Fprint(c.Out, question+" ")
	line, err := bufio.NewReader(c.In).ReadString('\n')
	switch {
	case err == io.EOF && line == "":
		return answerNone, nil
	case err != nil && err != io.EOF:
		return answerNo, Errorf("Failed to parse answer: %v", err)
	}
	line = strings.TrimSpace(line)
	switch low := strings.ToLower(line); {
	case low == "" || low[0] == 'n':
		return answerNo, nil
	case line == "y":
		return AnswerYes, nil
	case low[0] == 'y' && len(low) > 1:
		return answerAlmost, nil
	}
	return answerOther, nil
}

// Confirm requires a confirmation before a drain is toggled; see ConfirmAs.
func (c *Base) Confirm(question string) error {
	return c.ConfirmAs(question, "Canceling drain toggle")
}

// ConfirmAs prints a question, and the text if the answer is no. After any answer but "y" it prints a message
// and returns an exit code: 0 for no or for a yes that is not exactly "y", otherwise 1.
func (c *Base) ConfirmAs(question, ifNot string) error {
	answer, err := c.Prompt(question)
	switch {
	case err != nil:
		return err
	case answer == AnswerYes:
		return nil
	case answer == answerNone:
		fmt.Fprintln(c.Out, ifNot)
		return ErrNoAnswer
	case answer == answerNo:
		fmt.Fprintln(c.Out, ifNot)
		return ExitCode(0)
	case answer == answerAlmost:
		fmt.Fprintln(c.Out, "For confirmation, an exact ‘y’ is required.")
		return ExitCode(0)
	}
	fmt.Fprintln(c.Errs, "No confirmation detected. For confirmation, an exact 'y' is required.")
	return ExitCode(1)
}
