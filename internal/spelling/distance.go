// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package spelling measures how far a word is from one that was meant. It contains no words.
package spelling

// Distance returns how many letters to insert, delete or change to get from a to b. For words
// whose lengths differ by more than three it returns that difference, and the time it takes is
// bounded by the shorter one.
func Distance(a, b string) int {
	if d := max(len(a)-len(b), len(b)-len(a)); d > 3 {
		return d
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
