// Package trace is the one schema in which the simulator and real nodes write down what happens, so
// that the same tools print, draw and check both. docs/trace.md describes the file, kind by kind.
//
// # What is promised
//
// An event says what a node did, never what it might do: nothing here is read by package fsm or
// raft, and a node that records decides the same as one that does not. What an event was, and which
// rule of docs/rules.txt decided it, is worked out from the state before, the input and the state
// after; the functions that do it are pure.
//
// A [Recorder] writes the events of real nodes to a file. It never makes a node wait and never
// fails one: if the file cannot be written, it says so once and records no more. What is written
// survives a kill of the process but for the last lines, and [Read] takes a file that ends in the
// middle of a line. [Merge] makes one trace of the files of several nodes.
//
// # How it works
//
// A real node collects inputs and takes what follows from all of them together. Such a batch stands
// in the file in one piece: the inputs, then what followed, as docs/trace.md says.
//
// # Reading order
//
// trace.go (the schema), record.go (how things are written down), rules.go (which rule decided),
// file.go; recorder.go and merge.go are for real nodes.
package trace
