package sim

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The behaviours that the field's implementations are known to get right or wrong have ids: P from
// the paper's tests, E elections, R replication, C crashes, L locks, Q reads, S snapshots, T transfers, M
// members. Each that concerns what is built is named by the test or the scenario that shows it.
func TestEveryKnownBehaviourIsShownSomewhere(t *testing.T) {
	const wanted = `
		P01 P02 P03 P04 P05 P06 P07 P08 P09 P10 P11 P12 P13 P14 P15 P16 P17 P18 P19 P20 P22 P24 P25 P26
		E01 E02 E03 E04 E06 E07 E10 E11 E12 E13 E15 E16 E19 E20 E21 E22 E23 E24 E25 E26 E27 E28 E29 E33 E34
		Q01 Q02 Q05 Q06 Q07 Q08 T01 T02 T04 T05 T06 T07 T09
		R01 R02 R03 R04 R05 R07 R10 R12 R13 R14 R15 R16 R17 R18 R19 R21 R24
		C02 C04 C06 C07 C08 C10 C11 C12 C13
		S01 S04 S05 S07 S08 S09 S11 S13
		M01 M02 M03 M04 M05
		L01 L02 L03 L04 L05 L07 L09 L11 L12 L13 L16 L17`
	var shown strings.Builder
	for _, pattern := range []string{
		"../raft/*_test.go", "../fsm/*_test.go", "../rpc/*_test.go", "skew_test.go", "scenarios/*.txt",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			shown.Write(text)
		}
	}
	named := map[string]bool{}
	for _, id := range regexp.MustCompile(`\b[PERCLQSTM][0-9]{2}\b`).FindAllString(eachID(shown.String()), -1) {
		named[id] = true
	}
	for _, id := range strings.Fields(wanted) {
		if !named[id] {
			t.Errorf("no test and no scenario names %s", id)
		}
	}
}

// eachID writes P01–P03 as P01 P02 P03.
func eachID(text string) string {
	ranges := regexp.MustCompile(`\b([PERCLQSTM])([0-9])([0-9])[–-]([PERCLQSTM]?)([0-9])([0-9])\b`)
	return ranges.ReplaceAllStringFunc(text, func(s string) string {
		m := ranges.FindStringSubmatch(s)
		from, to := int(m[2][0]-'0')*10+int(m[3][0]-'0'), int(m[5][0]-'0')*10+int(m[6][0]-'0')
		var ids []string
		for ; from <= to; from++ {
			ids = append(ids, m[1]+string(rune('0'+from/10))+string(rune('0'+from%10)))
		}
		return strings.Join(ids, " ")
	})
}
