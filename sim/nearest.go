package sim

import (
	"slices"
	"strings"
)

// Nearest is the end of an error message about a misspelt word: `; did you mean "drop"?`, or "" if
// none of the names looks like the word. It offers the names that are the fewest slips of the
// finger away; failing that, those that have the word as a part.
func Nearest(word string, from []string) string {
	if len(word) > 60 { // no name of ours is that long, and comparing takes time
		return ""
	}
	word = strings.ToLower(word)
	best := min((len(word)+1)/3, 3)
	var near []string
	for _, name := range from {
		d := distance(word, strings.ToLower(name))
		if d < best {
			near = nil
		}
		if d <= best {
			best = d
			near = append(near, name)
		}
	}
	if len(near) == 0 && len(word) >= 3 {
		for _, name := range from {
			if strings.Contains(strings.ToLower(name), word) {
				near = append(near, name)
			}
		}
	}
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + oneOf(quoted(near[:min(len(near), 3)])) + "?"
}

func quoted(words []string) []string {
	marked := slices.Clone(words)
	for i, word := range marked {
		marked[i] = `"` + word + `"`
	}
	return marked
}

// oneOf lists words as a sentence does: "a, b or c".
func oneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// distance counts the slips that turn one word into the other: a letter too much, too few or wrong,
// or two neighbours swapped.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	// A cell of a row is the distance of a prefix of t from s[:i]; above is the row for s[:i-1] and
	// before the one for s[:i-2].
	before, above := make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(s); i++ {
		row := make([]int, len(t)+1)
		row[0] = i
		for j := 1; j <= len(t); j++ {
			wrong := 1
			if s[i-1] == t[j-1] {
				wrong = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+wrong)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above = above, row
	}
	return above[len(t)]
}
