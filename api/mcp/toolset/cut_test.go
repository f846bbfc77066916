// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCut(t *testing.T) {
	t.Run("WhatFitsStaysWhole", rapid.MakeCheck(func(t *rapid.T) {
		s := rapid.StringN(0, 300, -1).Draw(t, "text")
		got := Cut(s, "", 0, 0, 300)
		if got.Text != s || !got.Whole() {
			t.Fatalf("got %q, want %q whole", got.Text, s)
		}
	}))

	t.Run("KeepsHeadAndTailWithinTheBound", rapid.MakeCheck(func(t *rapid.T) {
		head := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n\té世🙂")), 0, 4000, -1).Draw(t, "head")
		tail := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n\té世🙂")), 0, 4000, -1).Draw(t, "tail")
		gap := rapid.SampledFrom([]int64{0, 0, 1, 1 << 40}).Draw(t, "gap")
		limit := rapid.IntRange(2*markRoom, 2000).Draw(t, "limit")
		got := Cut(head, tail, gap, gap/2, limit)
		if n := utf8.RuneCountInString(got.Text); n > limit {
			t.Fatalf("got %d characters, want at most %d", n, limit)
		}
		if !utf8.ValidString(got.Text) {
			t.Fatalf("got invalid UTF-8: %q", got.Text)
		}
		whole := head + tail
		if got.Whole() {
			if got.Text != whole || gap != 0 {
				t.Fatalf("whole, but got %q of %q with a gap of %d", got.Text, whole, gap)
			}
			return
		}
		first, last, ok := strings.Cut(got.Text, "[… ")
		if !ok {
			t.Fatalf("no mark in %q", got.Text)
		}
		_, last, _ = strings.Cut(last, "…]\n")
		// A line end may have been put before the mark.
		if !strings.HasPrefix(whole, first) && !strings.HasPrefix(whole, strings.TrimSuffix(first, "\n")) {
			t.Fatalf("%q does not begin %q", first, whole)
		}
		if !strings.HasSuffix(whole, last) {
			t.Fatalf("%q does not end %q", last, whole)
		}
		room := limit - markRoom
		if n := utf8.RuneCountInString(strings.TrimSuffix(first, "\n")); n > room*3/10 {
			t.Fatalf("the head has %d characters, want at most %d", n, room*3/10)
		}
		if n := utf8.RuneCountInString(last); n > room-room*3/10 {
			t.Fatalf("the tail has %d characters, want at most %d", n, room-room*3/10)
		}
		if gap == 0 {
			if lost := int64(len(whole)) - got.bytes; lost != int64(len(first)+len(last)) && lost != int64(len(first)-1+len(last)) {
				t.Fatalf("%d bytes are said to be left out of %d, and %d are there", got.bytes, len(whole), len(first)+len(last))
			}
		}
	}))

	t.Run("CutsOnLineEnds", func(t *testing.T) {
		var b strings.Builder
		for range 1000 {
			b.WriteString("a line of some length\n")
		}
		got := Cut(b.String(), "", 0, 0, 1000)
		for line := range strings.Lines(got.Text) {
			if line != "a line of some length\n" && !strings.HasPrefix(line, "[… ") {
				t.Errorf("got the line %q", line)
			}
		}
		kept := strings.Count(got.Text, "a line of some length\n")
		if got.lines != int64(1000-kept) {
			t.Errorf("lines left out: got %d, want %d", got.lines, 1000-kept)
		}
		head := strings.Index(got.Text, "[… ")
		if share := float64(head) / float64(len(got.Text)); share < 0.2 || share > 0.35 {
			t.Errorf("the head is %.0f %% of the answer, want about 30", 100*share)
		}
	})
}

func TestShareGivesWhatOneDoesNotNeedToTheOther(t *testing.T) {
	for _, c := range []struct{ a, b, wantA, wantB int }{
		{10, 5000, 10, 990},
		{5000, 10, 990, 10},
		{5000, 5000, 500, 500},
		{0, 0, 0, 1000},
	} {
		if a, b := share(1000, c.a, c.b); a != c.wantA || b != c.wantB {
			t.Errorf("share(1000, %d, %d): got %d and %d, want %d and %d", c.a, c.b, a, b, c.wantA, c.wantB)
		}
	}
}

func TestClean(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"ColoursGo":                {"\x1b[31mred\x1b[0m\n", "red\n"},
		"AProgressBarIsItsEnd":     {"10%\r50%\r100%\ndone\n", "100%\ndone\n"},
		"DosLineEndsAreOne":        {"a\r\nb\r\n", "a\nb\n"},
		"TitlesGo":                 {"\x1b]0;title\x07text", "text"},
		"AnEndlessTitleHidesNone":  {"\x1b]0;title\nnext", "0;title\nnext"},
		"BrokenBytesAreMarked":     {"a\xffb", "a\uFFFDb"},
		"ControlCharactersGo":      {"a\x00b\x08c\u0085d", "abcd"},
		"TextStays":                {"tab\tand 世界\n", "tab\tand 世界\n"},
		"AnEscapeAtTheEndIsNoText": {"text\x1b[3", "text"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Clean([]byte(c.in)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("AnythingBecomesPrintableText", rapid.MakeCheck(func(t *rapid.T) {
		got := Clean(rapid.SliceOf(rapid.SampledFrom([]byte("\x1b[]PX\\;m1\r\n\t\x00\x7f\x9c\xc2\x80\xe4\xb8\x96a"))).Draw(t, "raw"))
		if !utf8.ValidString(got) {
			t.Fatalf("got invalid UTF-8: %q", got)
		}
		for _, r := range got {
			if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
				t.Fatalf("got %q with %q", got, r)
			}
		}
	}))
}

func TestCaptureKeepsBothEndsInBoundedMemory(t *testing.T) {
	var c Capture
	line := []byte("0123456789 世\n")
	const lines = 1_000_000
	for range lines {
		c.Add(line)
	}
	if n := cap(c.head) + cap(c.tail); n > 4*(headKept+tailKept) {
		t.Errorf("holds %d bytes", n)
	}
	if got, want := int64(len(c.head)+len(c.tail))+c.Bytes, int64(lines*len(line)); got != want {
		t.Errorf("bytes kept and lost: got %d, want %d", got, want)
	}
	head, tail := c.Texts()
	for _, s := range []string{head, tail} {
		if strings.ContainsRune(s, utf8.RuneError) {
			t.Error("a character was cut")
		}
	}
	if !strings.HasPrefix(head, "0123456789 世\n") || !strings.HasSuffix(tail, "0123456789 世\n") {
		t.Errorf("got %.20q … %q", head, tail[max(0, len(tail)-20):])
	}
}
