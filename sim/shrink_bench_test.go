package sim

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"
)

// BenchmarkShrink shrinks the first 20 seeds that break something without a rule, and reports the
// middle ones: of the actions before and after, and of the time that it takes. One core does it all.
// The documentation shows what it prints.
func BenchmarkShrink(b *testing.B) {
	for _, rule := range slices.Sorted(maps.Keys(rulesAndWhatTheyGuard())) {
		b.Run(rule, func(b *testing.B) {
			seeds := failing(b, rule, 20)
			for b.Loop() {
				var before, after []int
				var took []time.Duration
				for _, s := range seeds {
					begun := time.Now()
					got := shrunk(b, Shrink{Scenario: s, Without: []string{rule}})
					took = append(took, time.Since(begun))
					before, after = append(before, got.Before), append(after, got.After)
				}
				b.ReportMetric(float64(middle(before)), "actions-before")
				b.ReportMetric(float64(middle(after)), "actions-after")
				b.ReportMetric(float64(slices.Max(after)), "most-after")
				b.ReportMetric(float64(middle(took).Milliseconds()), "ms-each")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func middle[T cmp.Ordered](of []T) T { return slices.Sorted(slices.Values(of))[len(of)/2] }
