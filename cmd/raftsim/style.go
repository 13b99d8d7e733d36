package main

import (
	"flag"
	"io"
	"os"
	"strings"

	"ticketing/sim"
)

// look is how output looks: chosen by the terminal, or by flags.
type look struct{ color, ascii bool }

func (l *look) define(f *flag.FlagSet) {
	f.BoolVar(&l.color, "color", false, "colour and Unicode even into a pipe or with NO_COLOR")
	f.BoolVar(&l.ascii, "ascii", false, "plain ASCII without colour even on a terminal")
}

// width is that of the pictures: they are made for it, and a golden file must not depend on a
// window.
const width = 118

func (l *look) style(c *call) sim.Style {
	rich := l.color || !l.ascii && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(c) && speaksUnicode()
	return sim.Style{Color: rich, ASCII: !rich, Width: width}
}

// isTerminal reports whether the output goes to a person's screen.
func isTerminal(c *call) bool {
	return c.screen != nil && onScreen(c.screen)
}

// onScreen reports whether what is written there goes to a terminal.
func onScreen(w io.Writer) bool {
	f, isFile := w.(*os.File)
	if !isFile {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// speaksUnicode goes by the first of the locale's variables that is set, as the C library does.
func speaksUnicode() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToLower(os.Getenv(name)); value != "" {
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return false
}
