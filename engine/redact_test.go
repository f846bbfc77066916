// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandpit.dev/sandbox"
)

func named(pairs ...string) []openSecret {
	var out []openSecret
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, openSecret{sandbox.Secret{Name: pairs[i]}, pairs[i+1]})
	}
	return out
}

func TestARedactorNamesWhatItTakesOut(t *testing.T) {
	r := newRedactor(named("A", "hunter22", "B", "it's \"x\" <&>\n", "C", "Hunter23/Q+", "D", "22 and"))
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
		if got := r.redact(text); got != want {
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
			got := r.redact(text)
			if !strings.Contains(got, "[secret "+s.Name+"]") || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
				t.Errorf("%s of %q: %q became %q", name, s.Value, text, got)
			}
		}
	}
}

func TestARedactorForgetsWhatIsDroppedAsOftenAsItWasAdded(t *testing.T) {
	r := &redactor{}
	a, b := named("A", "hunter22"), named("B", "hunter24")
	r.add(a)
	r.add(a)
	r.add(b)
	r.drop(a)
	if got := r.redact("hunter22 hunter24"); got != "[secret A] [secret B]" {
		t.Errorf("after one drop of two adds: %q", got)
	}
	r.drop(a)
	r.drop(a)
	if got := r.redact("hunter22 hunter24"); got != "hunter22 [secret B]" {
		t.Errorf("after all drops: %q", got)
	}
	r.drop(b)
	if !r.empty() {
		t.Errorf("%d forms are left", len(r.forms))
	}
}

// No text keeps a value, and no text without one changes, whatever stands around it.
func TestARedactorAgainstRandomText(t *testing.T) {
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
		var secrets []openSecret
		for i := range 1 + rnd.IntN(4) {
			v := word(4 + rnd.IntN(6))
			secrets = append(secrets, named("S"+strconv.Itoa(i), v)...)
		}
		r := newRedactor(secrets)
		text := word(rnd.IntN(10))
		for range rnd.IntN(4) {
			text += secrets[rnd.IntN(len(secrets))].Value + word(rnd.IntN(6))
		}
		got := r.redact(text)
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
		if again := r.redact(text); again != got {
			t.Fatalf("%q: %q, then %q", text, got, again)
		}
	}
}

// untouched gives the parts of a redacted text that were there before.
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

func TestAnEventIsRedactedAndKeepsItsBounds(t *testing.T) {
	r := newRedactor(named("A_NAME_THAT_IS_LONGER_THAN_ITS_VALUE", "hunter22"))
	changes := []sandbox.FileChange{{Path: "a"}, {Path: "b/hunter22.txt", Size: 3}}
	ev := &sandbox.Event{
		Command: strings.Repeat("hunter22", sandbox.MaxEventCommand/8), Detail: strings.Repeat("hunter22 ", 100),
		Cwd: "/hunter22", Path: "/a/hunter22", To: "hunter22", Changes: changes, ProcessID: "hunter22",
	}
	r.event(ev)
	text := fmt.Sprintf("%+v", *ev)
	if n := strings.Count(text, "hunter22"); n != 1 { // the id is ours
		t.Errorf("the value is there %d times: %s", n, text)
	}
	if len(ev.Command) > sandbox.MaxEventCommand || len(ev.Detail) > maxDetail+len(cutMark) {
		t.Errorf("the command has %d bytes, the detail %d", len(ev.Command), len(ev.Detail))
	}
	if changes[1].Path != "b/hunter22.txt" {
		t.Error("the caller's own list was changed")
	}
	if ev.Changes[0] != changes[0] || ev.Changes[1].Size != 3 {
		t.Errorf("the changes are %+v", ev.Changes)
	}
}

func TestALogIsRedactedWhateverItIsGiven(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		var h slog.Handler = slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})
		if format == "json" {
			h = slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})
		}
		l := &LogRedactor{}
		log := slog.New(l.Handler(h))
		log.Info("first", "n", 7)
		l.hide(named("A", "hunter22"))
		log.With("with", "hunter22").WithGroup("g").Debug("the hunter22",
			"text", "a hunter22", "error", fmt.Errorf("no: %w", errors.New("hunter22")), "list", []string{"hunter22"},
			"group", slog.GroupValue(slog.String("in", "hunter22")), "n", 12345)
		got := out.String()
		if strings.Contains(got, "hunter22") || strings.Count(got, "[secret A]") != 6 {
			t.Errorf("%s: %s", format, got)
		}
		if !strings.Contains(got, "12345") || !strings.Contains(got, "first") {
			t.Errorf("%s lost what is no secret: %s", format, got)
		}
	}
}

func TestALogForgetsTheOldestValuesFirst(t *testing.T) {
	l := &LogRedactor{}
	size := 16 << 10
	value := func(i int) string { return strconv.Itoa(1_000_000+i) + strings.Repeat("x", size-7) }
	for i := range 3 * maxShown / size {
		l.hide(named("S", value(i)))
		l.hide(named("S", value(i)))
	}
	if l.size > maxShown || len(l.order) != maxShown/size || len(l.have) != len(l.order) {
		t.Errorf("%d bytes of %d values (%d) are kept, want at most %d", l.size, len(l.order), len(l.have), maxShown)
	}
	if v := value(0); l.known.redact(v) != v {
		t.Error("the oldest is known yet")
	}
	if got := l.known.redact(value(3*maxShown/size - 1)); got != "[secret S]" {
		t.Errorf("the newest is not known: %.40s", got)
	}
}

func BenchmarkRedact(b *testing.B) {
	var all []string
	for i := range 64 {
		all = append(all, "S"+strconv.Itoa(i), fmt.Sprintf("sk-%032d", i))
	}
	r := newRedactor(named(all...))
	text := strings.Repeat("python -m pytest tests/unit -k 'not slow' ", 5)
	for b.Loop() {
		r.redact(text)
	}
}
