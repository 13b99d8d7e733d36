package sim

import (
	"testing"

	"ticketing/fsm/trace"
)

// The rule of a reply is the one that decided it when the request was handled. By the time that the
// reply leaves, the voter may have voted.
func TestALateReplyNamesTheRuleThatDecidedIt(t *testing.T) {
	s, err := Parse("late.txt", `# A refusal that leaves late
manual
config prevote=off
node S1 term=1 log=1,1
node S2 term=1 log=1
node S3 term=1 log=1,1
disk S1 stall
timeout S2
deliver S2->S1 vote
timeout S3
drop S3->S1
timeout S3
deliver S3->S1 vote
disk S1 ok
`)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(s, Options{Record: true})
	if err != nil || r.Failure != nil {
		t.Fatal(err, r.Failure)
	}
	rules := map[string]string{}
	for _, e := range r.Trace.Events {
		if e.Kind == trace.KindSend && e.Message.Kind == "vote-reply" {
			rules[e.Message.To] = e.Rule
		}
	}
	if rules["S2"] != "RV.UpToDate" || rules["S3"] != "RV.UpToDate" || len(rules) != 2 {
		t.Errorf("the replies name %v", rules)
	}
}
