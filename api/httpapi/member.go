// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"iter"
)

// members returns the names and values of a JSON object's own members, in order,
// doubles included. The data must be valid JSON, and an object; the values are
// parts of it. A value is never empty.
func members(data []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		i := space(data, 0) + 1 // over the brace
		for {
			i = space(data, i)
			if i >= len(data) || data[i] == '}' {
				return
			}
			end := text(data, i)
			name := string(data[i+1 : end-1])
			for k := i + 1; k < end-1; k++ {
				if data[k] == '\\' {
					_ = json.Unmarshal(data[i:end], &name) // valid, as all of data
					break
				}
			}
			i = space(data, end) + 1 // over the colon
			i = space(data, i)
			end = value(data, i)
			if !yield(name, data[i:end]) {
				return
			}
			i = space(data, end)
			if i < len(data) && data[i] == ',' {
				i++
			}
		}
	}
}

// elements returns the values of a JSON array, in order, under the same terms.
func elements(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := space(data, 0) + 1 // over the bracket
		for {
			i = space(data, i)
			if i >= len(data) || data[i] == ']' {
				return
			}
			end := value(data, i)
			if !yield(data[i:end]) {
				return
			}
			i = space(data, end)
			if i < len(data) && data[i] == ',' {
				i++
			}
		}
	}
}

// space returns the index of the first byte from i on that is not white space.
func space(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\r' || data[i] == '\n') {
		i++
	}
	return i
}

// text returns the index after the string that starts at i.
func text(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// value returns the index after the value that starts at i.
func value(data []byte, i int) int {
	depth := 0
	for i < len(data) {
		switch data[i] {
		case '"':
			i = text(data, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // the end of a bare value before it
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}
