package fsm

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// check says what is wrong with the shape of a tree.
func (b *branch) check() error {
	if b == nil {
		return nil
	}
	left, right := b.left.tall(), b.right.tall()
	if b.height != 1+max(left, right) || left-right > 1 || right-left > 1 {
		return fmt.Errorf("%s has height %d over %d and %d", b.key, b.height, left, right)
	}
	if err := b.left.check(); err != nil {
		return err
	}
	return b.right.check()
}

func contents(t *Table) map[string]Tenure {
	held := map[string]Tenure{}
	for key, tenure := range t.Tenures() {
		held[key] = tenure
	}
	return held
}

// The tree holds what a map would, in the order of keys, and stays balanced; and a copy that was made
// at any moment goes on holding what it did. A table that is read from a snapshot has such a tree too.
func TestATreeHoldsWhatAMapWouldAndOldOnesStay(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var table Table
	model := map[string]Tenure{}
	type moment struct {
		tree  tenures
		model map[string]Tenure
	}
	var moments []moment
	removed := 0
	for i := range 30_000 {
		key := fmt.Sprint(random.IntN(3000))
		if i/5000%2 == 1 {
			key = fmt.Sprintf("%05d", i%3000) // in order, as numbered keys come
		}
		if tenure, held := model[key]; held {
			table.remove(key, tenure)
			delete(model, key)
			removed++
		} else {
			model[key] = Tenure{Token: Token(i + 1)}
			table.put(key, model[key])
		}
		if i%500 != 0 {
			continue
		}
		if err := table.held.top.check(); err != nil {
			t.Fatal(err)
		}
		same(t, "keys", slices.Sorted(maps.Keys(model)), table.Keys())
		moments = append(moments, moment{table.held, maps.Clone(model)})
	}
	for _, m := range moments {
		same(t, "held then", m.model, contents(&Table{held: m.tree}))
		same(t, "how many", len(m.model), m.tree.size)
	}
	table.tokens = 30_000
	read, err := DecodeTable(table.Encode(), 1)
	if err == nil {
		err = read.held.top.check()
	}
	if err != nil {
		t.Error(err)
	}
	same(t, "read", contents(&table), contents(&read))
	if removed < 5000 || table.Len() < 1000 {
		t.Errorf("too tame: %d removed, %d held", removed, table.Len())
	}
}
