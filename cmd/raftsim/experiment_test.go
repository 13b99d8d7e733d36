package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEachExperimentTellsWhetherItsLawHeld(t *testing.T) {
	for name, seeds := range map[string]string{"arms": "1-100", "drift": "1-4", "lifetime": "1-3"} {
		code, out, errs := try("experiment", name, "-seeds", seeds)
		if code != exitHeld || errs != "" || !strings.Contains(out, "\nHELD  ") || strings.Contains(out, "BROKEN") {
			t.Errorf("%s: exit %d, %s\n%s", name, code, errs, out)
		}
		if i := strings.IndexFunc(out, func(r rune) bool { return r >= 0x80 }); i >= 0 {
			t.Errorf("%s: not plain ASCII near %q", name, out[max(0, i-20):i])
		}
		var report struct {
			Experiment string
			Held       bool
			Figures    map[string]any
		}
		code, out, errs = try("experiment", name, "-seeds", seeds, "-json")
		if err := json.Unmarshal([]byte(out), &report); err != nil || code != exitHeld || errs != "" {
			t.Fatalf("%s: exit %d, %v, %s", name, code, err, errs)
		}
		if report.Experiment != name || !report.Held || report.Figures["from"] != 1.0 {
			t.Errorf("%s: %+v", name, report)
		}
	}
}

// With one seed nobody may go wrong, and then nothing was shown.
func TestAnExperimentThatShowsNothingHasNotHeld(t *testing.T) {
	code, out, errs := try("experiment", "arms", "-seeds", "2-2")
	if code != exitBroken || errs != "" || !strings.Contains(out, "\nBROKEN  ") || strings.Contains(out, "HELD") {
		t.Errorf("exit %d, %s\n%s", code, errs, out)
	}
	code, out, _ = try("experiment", "arms", "-seeds", "2-2", "-json")
	if code != exitBroken || !strings.Contains(out, `"held": false`) || !strings.Contains(out, `"wrong": [`) {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestAPictureIsSmallWellFormedAndNamesItsUnits(t *testing.T) {
	for name, want := range map[string][]string{
		"arms":     {"1-100", "lock-delay", "overlap of belief, s", "stale writes taken"},
		"drift":    {"1-2", "margin, % of the lease", "overlap, ms", "overlap, s", "2ρ/(1+ρ) = 1.981 %"},
		"lifetime": {"1-2", "elections within the lease", "lifetime, in leases", "restart at full"},
	} {
		file := filepath.Join(t.TempDir(), "picture.svg")
		if code, out, errs := try("experiment", name, "-seeds", want[0], "-svg", file); code != exitHeld {
			t.Fatalf("%s: exit %d, %s\n%s", name, code, errs, out)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 40_000 {
			t.Errorf("%s: %d bytes", name, len(text))
		}
		words := wordsOf(t, string(text))
		for _, part := range want[1:] {
			if !strings.Contains(words, part) {
				t.Errorf("%s does not say %q: %q", name, part, words)
			}
		}
		if strings.Contains(string(text), "NaN") || strings.Contains(string(text), "Inf") {
			t.Errorf("%s has lines that lead nowhere", name)
		}
	}
}

// wordsOf reads all the words of a picture.
func wordsOf(t *testing.T, text string) string {
	t.Helper()
	var words strings.Builder
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return words.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := token.(xml.CharData); ok {
			words.Write(data)
			words.WriteByte('\n')
		}
	}
}

func TestAWrongExperimentIsAMisuse(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"drfit"}, `unknown experiment "drfit"; did you mean`},
		{[]string{"drift", "more"}, "experiment drift takes flags only"},
		{[]string{"drift", "-seeds", "0-3"}, "expected A-B"},
		{[]string{"drift", "-seeds", "1-"}, "expected A-B"},
		{[]string{"drift", "-seeds", "1-9999999"}, "a million seeds are the most"},
		{[]string{"drift", "-j", "-1"}, "-j must not be negative"},
		{[]string{"drift", "-faults", "mild"}, "unknown flag -faults"},
		{[]string{"lifetime", "-seeds", "1-1", "-svg", filepath.Join(t.TempDir(), "no", "such.svg")}, "drawing the figures"},
	} {
		code, out, errs := try(append([]string{"experiment"}, c.args...)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit %d, %q, %q, want %q", c.args, code, out, errs, c.want)
		}
	}
	code, out, _ := try("experiment")
	for _, e := range experiments() {
		if code != exitHeld || !strings.Contains(out, "  "+e.name+" ") {
			t.Errorf("exit %d, and %s is not listed in:\n%s", code, e.name, out)
		}
	}
}

func TestAnInterruptedExperimentTellsNoFigures(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	var out, errs strings.Builder
	if code := run(ctx, []string{"experiment", "drift"}, &out, &errs); code != exitCut || out.String()+errs.String() != "" {
		t.Errorf("exit %d, %q, %q", code, out.String(), errs.String())
	}
}
