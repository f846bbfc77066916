// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import "sort"

// mark is where an output frame begins. By marks a follower's place in a log is
// found without reading all that is before it, which would hold the program up.
type mark struct{ seq, off int64 }

const (
	// markEvery is how far apart marks are: to read so much is no work.
	markEvery = 64 << 10
	// maxMarks bounds them; when there are too many, every second one goes.
	maxMarks = 4096
)

// mark notes where the last output frame begins, if that is far enough from the one
// noted before.
func (l *logFile) mark(off int64) {
	n := len(l.marks)
	if n > 0 && off-l.marks[n-1].off < markEvery {
		return
	}
	if n == maxMarks {
		for i := range n / 2 {
			l.marks[i] = l.marks[2*i+1]
		}
		l.marks = l.marks[:n/2]
	}
	l.marks = append(l.marks, mark{l.seq, off})
}

// near returns where a frame begins that is the one numbered after or an earlier one;
// zero where none is noted.
func (l *logFile) near(after int64) int64 {
	i := sort.Search(len(l.marks), func(i int) bool { return l.marks[i].seq > after })
	if i == 0 {
		return 0
	}
	return l.marks[i-1].off
}
