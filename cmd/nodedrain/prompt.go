package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Answers to a confirmation prompt.
const (
	answerYes = iota
	answerNo
	// answerAlmost is a yes other than the required "y".
	answerAlmost
	answerOther
	// answerNone is the end of the input before any answer.
	answerNone
)

// errNoAnswer is the error of a question without an answer: the input of a script may be empty.
var errNoAnswer = fmt.Errorf("the input ended before an answer: %w", exitCode(0))

// ask asks a question and reads one line. The end of the input is an empty line.
func (c *operatorCommand) ask(question string) (answer int, err error) {
	fmt.Fprint(c.out, question+" ")
	line, err := bufio.NewReader(c.in).ReadString('\n')
	switch {
	case err == io.EOF && line == "":
		return answerNone, nil
	case err != nil && err != io.EOF:
		return answerNo, saidf("Failed to parse answer: %v", err)
	}
	line = strings.TrimSpace(line)
	switch low := strings.ToLower(line); {
	case low == "" || low[0] == 'n':
		return answerNo, nil
	case line == "y":
		return answerYes, nil
	case low[0] == 'y' && len(low) > 1:
		return answerAlmost, nil
	}
	return answerOther, nil
}

// confirmed asks before a drain is toggled; see confirmedAs.
func (c *operatorCommand) confirmed(question string) error {
	return c.confirmedAs(question, "Canceling drain toggle")
}

// confirmedAs asks, and prints the text if the answer is no. After any answer but "y" it prints a message
// and returns an exit code: 0 for no or for a yes that is not exactly "y", otherwise 1.
func (c *operatorCommand) confirmedAs(question, ifNot string) error {
	answer, err := c.ask(question)
	switch {
	case err != nil:
		return err
	case answer == answerYes:
		return nil
	case answer == answerNone:
		fmt.Fprintln(c.out, ifNot)
		return errNoAnswer
	case answer == answerNo:
		fmt.Fprintln(c.out, ifNot)
		return exitCode(0)
	case answer == answerAlmost:
		fmt.Fprintln(c.out, "For confirmation, an exact ‘y’ is required.")
		return exitCode(0)
	}
	fmt.Fprintln(c.errs, "No confirmation detected. For confirmation, an exact 'y' is required.")
	return exitCode(1)
}
