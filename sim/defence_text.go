package sim

import (
	"fmt"
	"strings"
)

// DefenceScope says what the searches of the table go through, and what not.
func DefenceScope() string {
	return `Scope: three servers, one key, two clients with a session each; at most 2 acquires, 2 leases that run
out, 1 Extend, 1 request that arrives twice, 1 client that leaves before its answer, 1 leader change.
S1 leads, and commits with S3. What S1 has sent since it last committed reaches S3 whole or not at all,
and likewise S2, which learns later that it is committed, and may be elected at any moment; from then on
S1 takes no part. A lease may run out at a leader at any moment. A client asks for the lock when it knows
of no tenure that it has not given back, and gives a tenure back, once, in time or late.
`
}

// DefenceText is the table, a line each.
func DefenceText(verdicts []Verdict) string {
	var b strings.Builder
	names := DefenceNames()
	for _, name := range names {
		fmt.Fprintf(&b, "%s  ", name)
	}
	fmt.Fprintf(&b, "verdict\n")
	safe := 0
	for i := range verdicts {
		v := &verdicts[i]
		for column, on := range v.On() {
			word := "-"
			if on {
				word = "on"
			}
			fmt.Fprintf(&b, "%-*s  ", len(names[column]), word)
		}
		fmt.Fprintf(&b, "%s\n", v.Words())
		if v.Broken == "" {
			safe++
		}
	}
	fmt.Fprintf(&b, "%d of %d are safe.\n", safe, len(verdicts))
	return b.String()
}

// Words says what the search came to.
func (v *Verdict) Words() string {
	if v.Broken == "" {
		return fmt.Sprintf("safe, %d states", v.States)
	}
	return fmt.Sprintf("%s broken in %d steps", v.Broken, len(v.Steps))
}

// DefenceWays lists the shortest ways to a broken invariant. Where several combinations have the
// same one it stands under the first of them, which has the most on.
func DefenceWays(verdicts []Verdict) string {
	first := map[string]int{}
	rows := map[string]int{}
	var order []string
	for i := range verdicts {
		v := &verdicts[i]
		if v.Broken == "" {
			continue
		}
		way := v.Broken + "\n" + strings.Join(v.Steps, "\n")
		if rows[way] == 0 {
			first[way] = i
			order = append(order, way)
		}
		rows[way]++
	}
	var b strings.Builder
	for _, way := range order {
		v := &verdicts[first[way]]
		also := ""
		if n := rows[way] - 1; n > 0 {
			also = fmt.Sprintf(", and in %d more rows", n)
		}
		fmt.Fprintf(&b, "\n%s broken %s%s\n", v.Broken, v.Defences, also)
		for i, step := range v.Steps {
			fmt.Fprintf(&b, "  %d. %s.\n", i+1, step)
		}
	}
	return b.String()
}
