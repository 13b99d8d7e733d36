package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// The same question has the same answer, by the flag that a failure prints or by the number alone.
func TestWhenDrawsThePointOfNoReturn(t *testing.T) {
	code, out, errs := try("when", "-futures", "5", "-without", "expire-token", failingSeed)
	if code != exitHeld || errs != "" || !strings.Contains(out, "point of no return: from ") || !strings.Contains(out, "#####") {
		t.Fatalf("exit %d, %s\n%s", code, errs, out)
	}
	_, again, _ := try("when", "-futures", "5", "-j", "1", "-seed", failingSeed, "-faults", "harsh", "-without", "expire-token")
	if again != out {
		t.Errorf("%s\nis not\n%s", again, out)
	}
}

func TestWhereThereIsNoMomentItSaysWhy(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "when takes -seed N"},
		{[]string{"late-expire"}, "late-expire does not fail"},
		{[]string{"1", "-seed"}, "when takes one scenario"},
		{[]string{"-futures", "0", "1"}, "-futures must be"},
		{[]string{"-futures", "99999999999999", "-without", "expire-token", failingSeed}, "at most 1000000"},
		{[]string{"-j", "-1", "1"}, "-j not negative"},
		{[]string{"late-expir"}, `"late-expire"`},
		{[]string{"-faults", "mild", "late-expire"}, "a scenario says so itself"},
		{[]string{"-without", "gtae", "1"}, `"gate"`},
	} {
		code, out, errs := try(append([]string{"when"}, tt.args...)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, tt.want) {
			t.Errorf("raftsim when %s: exit %d, %q, %q; want exit %d and %q",
				strings.Join(tt.args, " "), code, out, errs, exitUsage, tt.want)
		}
	}
}

func TestAnInterruptedWhenSaysSo(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"when", "-without", "expire-token", failingSeed}, &out, &errs)
	if code != exitCut || !strings.Contains(errs.String(), "INTERRUPTED") || out.Len() > 0 {
		t.Errorf("exit %d, %s\n%s", code, errs.String(), out.String())
	}
}
