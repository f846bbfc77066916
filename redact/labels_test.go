// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func named(pairs ...string) []Secret {
	var out []Secret
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, Secret{pairs[i], pairs[i+1]})
	}
	return out
}

func TestLabelsNameWhatTheyReplace(t *testing.T) {
	r := NewLabels(Record, named("A", "hunter22", "B", "it's \"x\" <&>\n", "C", "Hunter23/Q+", "D", "22 and")...)
	for text, want := range map[string]string{
		"":                                "",
		"hun":                             "hun",
		"nothing of it":                   "nothing of it",
		"hunter22":                        "[secret A]",
		"a hunter22, hunter22":            "a [secret A], [secret A]",
		"hunter2":                         "hunter2",
		"hunter22 and more":               "[secret A] more", // the second begins within the first
		`echo 'it'\''s "x" <&>` + "\n":    "echo '[secret B]",
		strconv.Quote("it's \"x\" <&>\n"): `"[secret B]"`,
		"hunter23/q+.example.org":         "[secret C].example.org",
		"?a=" + url.QueryEscape("Hunter23/Q+") + "&b": "?a=[secret C]&b",
		"hunte…":          "[secret A]…",
		"hun…":            "hun…",
		"x Hunter23/… y":  "x [secret C]… y",
		"hunter2… hunter": "[secret A]… hunter",
	} {
		if got := r.String(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	for name, enc := range map[string]func(string) string{
		"json":   func(s string) string { b, _ := json.Marshal(s); return string(b) },
		"ascii":  strconv.QuoteToASCII,
		"hex":    func(s string) string { return hex.EncodeToString([]byte(s)) },
		"HEX":    func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
		"path":   url.PathEscape,
		"base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"basic":  func(s string) string { return base64.StdEncoding.EncodeToString([]byte("user:" + s)) },
		"basic1": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("u:" + s + " and more")) },
		"url64":  func(s string) string { return base64.URLEncoding.EncodeToString([]byte("abc" + s)) },
	} {
		for _, s := range named("A", "hunter22", "B", "it's \"x\" <&>\n", "C", "Hunter23/Q+") {
			text := "before " + enc(s.Value) + " after"
			got := r.String(text)
			if !strings.Contains(got, "[secret "+s.Name+"]") || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
				t.Errorf("%s of %q: %q became %q", name, s.Value, text, got)
			}
		}
	}
}

// A name that happens to be a value in upper case is masked where it is told, and not refused.
func TestAValueInUpperCaseIsNotRefused(t *testing.T) {
	r := NewLabels(Record, named("PG", "postgres", "KEY", "HUNTER22")...)
	for text, want := range map[string]string{"POSTGRES_USER": "", "postgres_user": "PG", "a HUNTER22": "KEY"} {
		if got := r.In(8, text); got != want {
			t.Errorf("%q has the value of %q, want %q", text, got, want)
		}
	}
	if got := r.String("POSTGRES_USER"); got != "[secret PG]_USER" {
		t.Errorf("it is told as %q", got)
	}
}

func TestLabelsForgetWhatIsRemovedAsOftenAsItWasAdded(t *testing.T) {
	r := NewLabels(Record)
	a, b := named("A", "hunter22"), named("B", "hunter24")
	r.Add(a...)
	r.Add(a...)
	r.Add(b...)
	r.Remove(a...)
	if got := r.String("hunter22 hunter24"); got != "[secret A] [secret B]" {
		t.Errorf("after one drop of two adds: %q", got)
	}
	r.Remove(a...)
	r.Remove(a...)
	if got := r.String("hunter22 hunter24"); got != "hunter22 [secret B]" {
		t.Errorf("after all drops: %q", got)
	}
	r.Remove(b...)
	if !r.Empty() {
		t.Errorf("%d forms are left", len(r.forms))
	}
}

// No text keeps a value, and no text without one changes, whatever stands around it.
func TestLabelsAgainstRandomText(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	const letters = "abAB01'\"\\ \n/+é…"
	word := func(n int) string {
		var b strings.Builder
		all := []rune(letters)
		for range n {
			b.WriteRune(all[rnd.IntN(len(all))])
		}
		return b.String()
	}
	for range 3000 {
		var secrets []Secret
		for i := range 1 + rnd.IntN(4) {
			v := word(4 + rnd.IntN(6))
			secrets = append(secrets, named("S"+strconv.Itoa(i), v)...)
		}
		r := NewLabels(Record, secrets...)
		text := word(rnd.IntN(10))
		for range rnd.IntN(4) {
			text += secrets[rnd.IntN(len(secrets))].Value + word(rnd.IntN(6))
		}
		got := r.String(text)
		has := false
		for _, s := range secrets {
			has = has || strings.Contains(text, s.Value)
			if rest := untouched(got); slices.ContainsFunc(rest, func(part string) bool { return strings.Contains(part, s.Value) }) {
				t.Fatalf("%q is left in %q, which was %q", s.Value, got, text)
			}
		}
		if has && got == text {
			t.Fatalf("%q was left as it is", text)
		}
		if again := r.String(text); again != got {
			t.Fatalf("%q: %q, then %q", text, got, again)
		}
	}
}

// untouched returns the parts of a redacted text that were there before.
func untouched(text string) []string {
	var out []string
	for {
		before, rest, ok := strings.Cut(text, "[secret S")
		out = append(out, before)
		if !ok {
			return out
		}
		_, text, _ = strings.Cut(rest, "]")
	}
}

func BenchmarkLabels(b *testing.B) {
	var all []string
	for i := range 64 {
		all = append(all, "S"+strconv.Itoa(i), fmt.Sprintf("sk-%032d", i))
	}
	r := NewLabels(Record, named(all...)...)
	text := strings.Repeat("python -m pytest tests/unit -k 'not slow' ", 5)
	for b.Loop() {
		r.String(text)
	}
}
