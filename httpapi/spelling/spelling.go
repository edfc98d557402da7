// Package spelling finds the word that a misspelled one resembles.
package spelling

// Nearest returns the candidate that a misspelled word most resembles, or empty if none is close.
func Nearest(word string, candidates []string) string {
	best, at := "", 1+len(word)/4
	for _, c := range candidates {
		if d := distance(word, c); d < at || d == at && best == "" {
			best, at = c, d
		}
	}
	return best
}

// distance counts the letters to add, remove, replace or swap with their neighbour that turn one
// word into the other.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			replaced := rows[i-1][j-1]
			if x[i-1] != y[j-1] {
				replaced++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replaced)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
