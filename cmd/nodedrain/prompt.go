package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Answers to a question that is to be confirmed.
const (
	answerYes = iota
	answerNo
	// answerAlmost is a "yes" that is not the letter asked for.
	answerAlmost
	answerOther
)

// ask asks a question and reads one line. The end of the input is an empty line.
func (c *operatorCommand) ask(question string) (answer int, err error) {
	fmt.Fprint(c.out, question+" ")
	line, err := bufio.NewReader(c.in).ReadString('\n')
	if err != nil && err != io.EOF {
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

// confirmed asks before a drain is toggled, and tells what else than "y" comes of it: the
// exit code is 0 if the user thought better of it, or as good as said yes.
func (c *operatorCommand) confirmed(question string) error {
	answer, err := c.ask(question)
	switch {
	case err != nil:
		return err
	case answer == answerYes:
		return nil
	case answer == answerNo:
		fmt.Fprintln(c.out, "Canceling drain toggle")
		return exitCode(0)
	case answer == answerAlmost:
		fmt.Fprintln(c.out, "For confirmation, an exact ‘y’ is required.")
		return exitCode(0)
	}
	fmt.Fprintln(c.errs, "No confirmation detected. For confirmation, an exact 'y' is required.")
	return exitCode(1)
}
