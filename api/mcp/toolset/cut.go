// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// markRoom is what the mark of a cut takes at most, in characters.
const markRoom = 80

// excerpt is text that was shortened to a bound.
type excerpt struct {
	Text  string
	bytes int64 // left out
	lines int64
}

// Whole reports whether nothing was cut.
func (e *excerpt) Whole() bool { return e.bytes == 0 }

// Cut shortens a text to at most limit characters: the first 30 % and the last
// 70 %, on line ends where one is near, with a mark between them. The text is
// head and then tail; gapBytes and gapLines stood between them and are lost
// already. Limits below twice markRoom are taken as that.
func Cut(head, tail string, gapBytes, gapLines int64, limit int) excerpt {
	limit = max(limit, 2*markRoom)
	if gapBytes == 0 {
		head, tail = head+tail, ""
		if len(head) <= limit || utf8.RuneCountInString(head) <= limit {
			return excerpt{Text: head}
		}
		tail = head
	}
	room := limit - markRoom
	first := FirstRunes(head, room*3/10)
	last := lastRunes(tail, room-room*3/10)
	if i := strings.LastIndexByte(first, '\n'); i >= len(first)/2 {
		first = first[:i+1]
	}
	if i := strings.IndexByte(last, '\n'); i >= 0 && i < len(last)/2 && len(last) < len(tail) {
		last = last[i+1:]
	}
	out := excerpt{}
	if gapBytes == 0 {
		// Both are of one text, and do not meet: it is longer than they are.
		middle := head[len(first) : len(head)-len(last)]
		out.bytes, out.lines = int64(len(middle)), int64(strings.Count(middle, "\n"))
	} else {
		out.bytes = gapBytes + int64(len(head)-len(first)) + int64(len(tail)-len(last))
		out.lines = gapLines + int64(strings.Count(head[len(first):], "\n")+strings.Count(tail[:len(tail)-len(last)], "\n"))
	}
	mark := fmt.Sprintf("[… %d bytes, %d lines left out …]\n", out.bytes, out.lines)
	if first != "" && !strings.HasSuffix(first, "\n") {
		mark = "\n" + mark
	}
	out.Text = first + mark + last
	return out
}

// FirstRunes returns the first n characters of s.
func FirstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// lastRunes returns the last n characters of s.
func lastRunes(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}

// share splits a bound between two streams of these lengths: what one does not
// need, the other gets.
func share(limit, a, b int) (int, int) {
	half := limit / 2
	switch {
	case a <= half:
		return a, limit - a
	case b <= half:
		return limit - b, b
	}
	return half, limit - half
}
