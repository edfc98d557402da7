package scenario

import "strings"

// ruler separates sections.
const ruler = "----"

const blanks = " \t\r"

// sections splits the lines of a file into the lines of the scenario and of each expected text.
func sections(lines []string) (setup []string, expected [][]string) {
	parts := [][]string{nil}
	start := 0
	for i, line := range lines {
		if strings.TrimRight(line, blanks) == ruler {
			parts[len(parts)-1] = lines[start:i]
			parts = append(parts, nil)
			start = i + 1
		}
	}
	parts[len(parts)-1] = lines[start:]
	return parts[0], parts[1:]
}

// section returns the text of a section without the blank lines around it.
func section(lines []string) string {
	trimmed := make([]string, len(lines))
	for i, line := range lines {
		trimmed[i] = strings.TrimRight(line, blanks)
	}
	return strings.Trim(strings.Join(trimmed, "\n"), "\n")
}

// prose returns the comment at the beginning of a file.
func prose(lines []string) []string {
	var texts []string
	for _, line := range lines {
		line = strings.Trim(line, blanks)
		text, is := strings.CutPrefix(line, "#")
		switch {
		case is:
			texts = append(texts, strings.TrimPrefix(text, " "))
		case line != "" || len(texts) > 0:
			return texts
		}
	}
	return texts
}

// Wrap splits a text into lines of prose, at most width characters long if no word is longer.
func Wrap(text string, width int) (lines []string) {
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// Rewrite returns the text of a scenario file with another expected story and end. The rest of the
// file stays. If both are empty, the file expects neither.
func Rewrite(text []byte, story, end string) []byte {
	setup, _ := sections(strings.Split(string(text), "\n"))
	body := strings.TrimRight(strings.Join(setup, "\n"), "\n")
	return []byte(body + "\n" + expectation(story, end))
}

// expectation returns the printed sections of the expected texts.
func expectation(story, end string) string {
	var b strings.Builder
	for _, text := range expected(story, end) {
		b.WriteString(ruler + "\n")
		if text != "" {
			b.WriteString(text + "\n")
		}
	}
	return b.String()
}

// expected returns the expected texts. An end needs a story before it, even an empty one.
func expected(story, end string) []string {
	switch {
	case end != "":
		return []string{story, end}
	case story != "":
		return []string{story}
	}
	return nil
}
