// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package budget

import "context"

// Output is the beginning of a command's two streams, which is held in memory for its answer.
// The first freeOutput bytes of a stream cost nothing. A command that writes more takes room
// for all that it may still write; where that is not to be had, the rest is cut
// off. Who writes is not trusted to keep to the bound.
type Output struct {
	Room  *Room // nil: it counts nowhere
	most  [2]int64
	data  [2][]byte
	cut   [2]bool
	asked bool // room was taken, or refused
}

// freeOutput is what is kept of a stream without a question.
const freeOutput = 32 << 10

// NewOutput returns an output that keeps so many bytes of each stream, and counts them in room.
func NewOutput(room *Room, most [2]int64) Output { return Output{Room: room, most: most} }

// keptCost is what n bytes that are kept cost: a buffer that grows fourfold leaves
// a third of its size to the garbage collector.
func keptCost(n int64) int64 { return n + n/3 }

// Reserve makes room for n bytes more of a stream, and may wait for it as long as the budget
// does, and ctx. It is for the one who writes.
func (o *Output) Reserve(ctx context.Context, stream int, n int) {
	if !o.asked && min(int64(len(o.data[stream]))+int64(n), o.most[stream]) > freeOutput {
		o.take(ctx)
	}
}

// Write keeps of p what there is room for. Reserve comes before it.
func (o *Output) Write(stream int, p []byte) {
	old := o.data[stream]
	if left := o.most[stream] - int64(len(old)); int64(len(p)) > left {
		p, o.cut[stream] = p[:left], true
	}
	if need := int64(len(old) + len(p)); need > freeOutput && need > int64(cap(old)) {
		old = append(make([]byte, 0, max(need, min(4*need, o.most[stream]))), old...)
	}
	o.data[stream] = append(old, p...)
}

// take takes room for both streams at once: two commands that each held one stream's would
// wait for each other.
func (o *Output) take(ctx context.Context) {
	o.asked = true
	var want int64
	for _, most := range o.most {
		want += max(0, most-freeOutput)
	}
	cost := keptCost(want)
	got, err := o.Room.Take(ctx, cost)
	if err == nil && got == cost {
		return
	}
	got = got / 4 * 3 // as keptCost has it
	for i, most := range o.most {
		if most > freeOutput {
			o.most[i] = max(int64(len(o.data[i])), freeOutput+int64(float64(got)*float64(most-freeOutput)/float64(want)))
		}
	}
}

// Kept returns what was kept of each stream so far.
func (o *Output) Kept() [2][]byte { return o.data }

// Truncated reports of each stream whether some of it was not kept.
func (o *Output) Truncated() [2]bool { return o.cut }

// Drop lets the garbage collector have what was kept.
func (o *Output) Drop() { o.data = [2][]byte{} }
