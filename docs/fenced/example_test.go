//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package fenced_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"ticketing/docs/fenced"
)

// Two holders, one after the other. The first has been paused and does not know that it has lost
// the lock.
func Example() {
	dir, err := os.MkdirTemp("", "fenced")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := fenced.Open(filepath.Join(dir, "store"))
	if err != nil {
		log.Fatal(err)
	}

	const first, second = 33, 34 // the tokens of two grants of the same lock
	fmt.Println(store.Put(first, "report", "begun"))
	text, err := store.Get(second, "report") // the second holder only reads yet
	fmt.Println(text, err)
	err = store.Put(first, "report", "nearly done")
	fmt.Println(err)
	fmt.Println(errors.Is(err, fenced.ErrStale))
	fmt.Println(store.Put(second, "report", text+", and done"))
	fmt.Println(store.Get(second, "report"))
	// Output:
	// <nil>
	// begun <nil>
	// token 33 is refused, token 34 has been seen: the lock was granted again since
	// true
	// <nil>
	// begun, and done <nil>
}
