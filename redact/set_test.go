// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// naive masks a whole text, of which all bytes before end have come.
func naive(patterns [][]byte, text []byte, end int) []byte {
	out := slices.Clone(text[:end])
	for _, p := range patterns {
		for i := range end - len(p) + 1 {
			if bytes.Equal(text[i:i+len(p)], p) {
				stars(out[i : i+len(p)])
			}
		}
	}
	return out
}

// mayBegin is the length of the longest end of text that a pattern begins with, and is not.
func mayBegin(patterns [][]byte, text []byte) (n int) {
	for _, p := range patterns {
		for l := min(len(p)-1, len(text)); l > n; l-- {
			if bytes.HasSuffix(text, p[:l]) {
				n = l
			}
		}
	}
	return n
}

// feed writes text to a stream in pieces, of which some are followed by a release of what
// is held back, and compares what comes out with what a naive reader would give.
func feed(t *testing.T, patterns [][]byte, text []byte, piece func() int, release func() bool) {
	t.Helper()
	texts := make([]string, len(patterns))
	for i, p := range patterns {
		texts[i] = string(p)
	}
	st := compile(texts).Stream()
	var out, want, held []byte
	for end := 0; end < len(text); {
		n := min(max(piece(), 1), len(text)-end)
		b := append(slices.Clone(held), text[end:end+n]...)
		ready := st.Mask(b, len(held))
		end += n
		if left := len(b) - ready; left > 0 && left > mayBegin(patterns, text[:end]) {
			t.Fatalf("patterns %q: after %q it holds %d bytes back, and only %d may begin one", patterns, text[:end], left, mayBegin(patterns, text[:end]))
		}
		if release() || end == len(text) {
			ready = len(b)
		}
		out, held = append(out, b[:ready]...), b[ready:]
		want = append(want, naive(patterns, text, end)[len(want):len(out)]...)
	}
	if !bytes.Equal(out, want) {
		t.Fatalf("patterns %q, text %q:\n got %q\nwant %q", patterns, text, out, want)
	}
}

func TestAnySplitGivesWhatTheWholeTextWould(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 26))
	random := func(n int, letters string) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		return b
	}
	for range 20_000 {
		letters := []string{"a", "ab", "ab*", "abc", "ab\n\r"}[r.IntN(5)]
		var patterns [][]byte
		for range 1 + r.IntN(4) {
			patterns = append(patterns, random(1+r.IntN(8), letters))
		}
		text := random(1+r.IntN(60), letters+"x")
		for range r.IntN(3) {
			text = slices.Insert(text, r.IntN(len(text)+1), patterns[r.IntN(len(patterns))]...)
		}
		most := 1 + r.IntN(20)
		never := r.IntN(2) == 0
		feed(t, patterns, text, func() int { return 1 + r.IntN(most) }, func() bool { return !never && r.IntN(4) == 0 })
	}
}

func FuzzMask(f *testing.F) {
	f.Add([]byte("abab|ab|babc"), []byte("xxababcabcbab"), []byte{3, 1, 130, 2})
	f.Add([]byte("aaaa|aaab"), []byte("aaaaaaaaaaabaa"), []byte{1})
	f.Fuzz(func(t *testing.T, patterns, text, cuts []byte) {
		var all [][]byte
		for p := range bytes.SplitSeq(patterns[:min(len(patterns), 200)], []byte("|")) {
			if len(p) > 0 {
				all = append(all, p)
			}
		}
		if len(all) == 0 || len(cuts) == 0 {
			return
		}
		i := 0
		cut := func() byte { i++; return cuts[i%len(cuts)] }
		feed(t, all, text[:min(len(text), 1000)], func() int { return int(cut() & 0x7f) }, func() bool { return cuts[i%len(cuts)] > 0x7f })
	})
}

func TestWhatIsFound(t *testing.T) {
	const token, short = "ghp_x7Zq?~0aB/c+d==", "hunter2"
	pem := "-----BEGIN KEY-----\nMIIEvQ\"\\\n-----END KEY-----\n"
	set := New(Output, [][]byte{[]byte(token), []byte(short), []byte(pem), []byte("x7Zq"), nil})
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	for _, c := range []struct{ name, text, want string }{
		{"as it is", "token=" + token + ";", "token=*******************;"},
		{"alone", token, "*******************"},
		{"twice, without a gap", short + short, "**************"},
		{"one within another alone", "0x7Zq0", "0****0"},
		{"nothing", "hunter ghp_x7Z", "hunter ghp_x7Z"},
		{"lines", "[" + pem + "]", "[" + strings.Repeat("*", len(pem)) + "]"},
		{"lines, the last without its end", "[" + strings.TrimSpace(pem) + "]", "[" + strings.Repeat("*", len(pem)-1) + "]"},
		{"lines at a terminal", strings.ReplaceAll(pem, "\n", "\r\n"), strings.Repeat("*", len(pem)+3)},
		{"in JSON", quote(pem), `"` + strings.Repeat("*", len(quote(pem))-2) + `"`},
	} {
		if got := set.String(c.text); got != c.want {
			t.Errorf("%s: %q gives %q, not %q", c.name, c.text, got, c.want)
		}
	}
	if got := (*Set)(nil).String(token); got != token {
		t.Errorf("no set: %q", got)
	}
	if New(Output, nil) != nil || New(Output, [][]byte{nil, {}}) != nil {
		t.Error("a set of nothing is one")
	}
}

func TestBase64IsFoundWhereverTheValueStandsInIt(t *testing.T) {
	for _, value := range []string{"password", "ghp_x7Zq?~0aB/c+d", "\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7"} {
		set := New(Output, [][]byte{[]byte(value)})
		for before := range 4 {
			for after := range 4 {
				for name, e := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding, "raw": base64.RawStdEncoding} {
					plain := strings.Repeat("b", before) + value + strings.Repeat("a", after)
					got := set.String("[" + e.EncodeToString([]byte(plain)) + "]")
					if stars := strings.Count(got, "*"); stars < (8*len(value)-10)/6 {
						t.Errorf("%q in %s, %d bytes before and %d after: %s", value, name, before, after, got)
					}
				}
			}
		}
	}
	if got := New(Output, [][]byte{[]byte("12345")}).String("MTIzNDU="); strings.Contains(got, "*") {
		t.Errorf("a value too short to be told from chance is found in base64: %s", got)
	}
}

// What is written is hostile, and may repeat what a value repeats.
func TestTimeDoesNotDependOnTheText(t *testing.T) {
	value := append(bytes.Repeat([]byte("a"), 32<<10), 'b')
	st := New(Output, [][]byte{value, bytes.Repeat([]byte("a"), 20<<10), []byte("aaaa")}).Stream()
	var held []byte
	text := bytes.Repeat([]byte("a"), 16<<20) // quadratic time would take hours
	for len(text) > 0 {
		n := min(len(text), 64<<10)
		b := append(held, text[:n]...)
		ready := st.Mask(b, len(held))
		if bytes.ContainsRune(b[:ready], 'a') {
			t.Fatal("something is not masked")
		}
		held, text = slices.Clone(b[ready:]), text[n:]
	}
}

func BenchmarkStream(b *testing.B) {
	words := make([]byte, 64<<10)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range words {
		words[i] = "eeetaoinshrdlu _\n"[r.IntN(17)]
	}
	for _, n := range []int{1, 8, 64} {
		var values [][]byte
		for range n {
			v := make([]byte, 40)
			for i := range v {
				v[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"[r.IntN(63)]
			}
			values = append(values, v)
		}
		for name, text := range map[string][]byte{"Zeros": make([]byte, 64<<10), "Words": words} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				st := New(Output, values).Stream()
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					st.Mask(text, 0)
				}
			})
		}
		b.Run(fmt.Sprintf("%d/New", n), func(b *testing.B) {
			for b.Loop() {
				New(Output, values)
			}
		})
	}
	b.Run("Short/Words", func(b *testing.B) {
		st := New(Output, [][]byte{[]byte("test")}).Stream()
		b.SetBytes(int64(len(words)))
		for b.Loop() {
			st.Mask(words, 0)
		}
	})
}
