// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"strings"
	"unicode"

	"sandpit.dev/internal/budget"
	"sandpit.dev/kernel"
)

// keptResults are the values of a cell that are held in memory for its answer.
type keptResults struct {
	room    *budget.Room
	list    []kernel.Result
	bytes   int64
	most    int64
	dropped int // for want of room
	asked   bool
}

const (
	freeResults = 64 << 10 // bytes that cost nothing
	// resultCost is what a byte of a result costs: as it came, in the answer's fields, and
	// twice as the encoded answer.
	resultCost = 4
)

// add keeps a result, if there is room for it. All that a cell may give is asked for at once.
func (k *keptResults) add(ctx context.Context, r kernel.Result) {
	size := r.Size()
	if !k.asked && k.bytes+size > freeResults {
		k.asked = true
		got, err := k.room.Take(ctx, resultCost*kernel.MaxResultBytes)
		if k.most = got / resultCost; err != nil {
			k.most = freeResults
		}
	}
	if k.asked && k.bytes+size > k.most {
		k.dropped++
		return
	}
	k.bytes += size
	k.list = append(k.list, r)
}

// collecting reports whether the caller may ask for what the cell shows.
func (x *cell) collecting() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.collect
}

// outcomeText is one line for people.
func outcomeText(r *Result) string {
	switch {
	case r.Error != nil:
		first, _, _ := strings.Cut(r.Error.Value, "\n")
		return strings.Map(func(c rune) rune {
			if !unicode.IsPrint(c) {
				return ' '
			}
			return c
		}, strings.TrimSuffix(r.Error.Name+": "+first, ": "))
	case r.CauseDetail != "":
		return r.CauseDetail
	case r.Status == Interrupted:
		return "interrupted"
	}
	return ""
}
