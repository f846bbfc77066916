// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/internal/budget"
)

// collected is the beginning of a command's output, which is held in memory for its answer.
// The first freeOutput bytes of a stream cost nothing. A command that writes more takes room
// for all that it may still write; where that is not to be had, the rest is cut
// off, and can be read from the command's log. What the agent sends is not trusted to keep
// to the bound.
type collected struct {
	room  *budget.Room
	most  [2]int64 // of each stream: stdout, stderr
	data  [2][]byte
	cut   [2]bool
	asked bool // room was taken, or refused
}

// freeOutput is what is kept of a stream without a question.
const freeOutput = 32 << 10

// keptCost is what n bytes that are kept cost: a buffer that grows fourfold leaves
// a third of its size to the garbage collector.
func keptCost(n int64) int64 { return n + n/3 }

// reserve makes room for n bytes more of a stream, and may wait for it as long as the budget
// does, and ctx. It is for the one who writes.
func (c *collected) reserve(ctx context.Context, stream int, n int) {
	if !c.asked && min(int64(len(c.data[stream]))+int64(n), c.most[stream]) > freeOutput {
		c.take(ctx)
	}
}

// write keeps of p what there is room for. Reserve comes before it.
func (c *collected) write(stream int, p []byte) {
	old := c.data[stream]
	if left := c.most[stream] - int64(len(old)); int64(len(p)) > left {
		p, c.cut[stream] = p[:left], true
	}
	if need := int64(len(old) + len(p)); need > freeOutput && need > int64(cap(old)) {
		old = append(make([]byte, 0, max(need, min(4*need, c.most[stream]))), old...)
	}
	c.data[stream] = append(old, p...)
}

// take takes room for both streams at once: two commands that each held one stream's would
// wait for each other.
func (c *collected) take(ctx context.Context) {
	c.asked = true
	var want int64
	for _, most := range c.most {
		want += max(0, most-freeOutput)
	}
	cost := keptCost(want)
	got, err := c.room.Take(ctx, cost)
	if err == nil && got == cost {
		return
	}
	got = got / 4 * 3 // as keptCost has it
	for i, most := range c.most {
		if most > freeOutput {
			c.most[i] = max(int64(len(c.data[i])), freeOutput+int64(float64(got)*float64(most-freeOutput)/float64(want)))
		}
	}
}

// result puts what was kept into r.
func (c *collected) result(r *ExecResult) {
	r.Stdout, r.Stderr = c.data[0], c.data[1]
	r.StdoutTruncated = r.StdoutTruncated || c.cut[0]
	r.StderrTruncated = r.StderrTruncated || c.cut[1]
}
