// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"sandpit.dev/redact"
	"sandpit.dev/redact/redacttest"
)

const value = "s3cr3t/value+of.the=test"

// readSize is how much of a body is read at a time.
const readSize = 32 << 10

// chosen are the spellings that a program can have an honest host answer in.
func chosen(value string) map[string]redacttest.Case {
	all := map[string]redacttest.Case{}
	for _, c := range redacttest.Cases(value) {
		if masked, _ := redact.Echo.Masks(c.Spelling); masked && c.Spelling < redact.Cut {
			all[c.Name] = c
		}
	}
	return all
}

// jsonEscaped writes all of s as JSON may.
func jsonEscaped(s string) string {
	out := ""
	for i := range len(s) {
		out += fmt.Sprintf(`\u%04X`, s[i])
	}
	return out
}

func percented(s string) string {
	out := ""
	for i := range len(s) {
		out += fmt.Sprintf("%%%02X", s[i])
	}
	return out
}

// each writes each byte of a value by a format.
func each(value, format string) string {
	var out strings.Builder
	for i := range len(value) {
		fmt.Fprintf(&out, format, value[i])
	}
	return out.String()
}

// honest are ways in which an honest server sends back a value.
func honest(value string) map[string]string {
	quoted, _ := json.Marshal(value)
	return map[string]string{
		"itself": value, "JSON": strings.Trim(string(quoted), `"`), "JSON with slashes": strings.ReplaceAll(strings.Trim(string(quoted), `"`), "/", `\/`),
		"all of JSON": jsonEscaped(value), "query": url.QueryEscape(value), "path": url.PathEscape(value), "all of percent": percented(value),
		"lower percent": strings.ToLower(percented(value[:1])) + value[1:], "HTML": html.EscapeString(value), "both": percented(value[:3]) + jsonEscaped(value[3:]),
		"base64 in JSON": strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(value))[:len(value)/3*4], "/", `\/`),
	}
}

func TestEverySpellingIsMasked(t *testing.T) {
	for _, value := range []string{value, "sk-ABCdef0123456789", "0xdeadbeef-0000", "a b:c,d;e|f%41&amp;g", `C:\x\101 +/=`} {
		v := New([]string{"another value", value})
		for how, s := range chosen(value) {
			before, after := "<begin> ", " <end>"
			whole := before + s.Text + after
			want := v.String(whole)
			if wrong := s.Check(before, want, after); wrong != "" {
				t.Errorf("%q, %s: %s", value, how, wrong)
				continue
			}
			for split := 1; split < len(whole); split++ {
				m := v.Stream()
				parts := string(m.Push([]byte(whole[:split])))
				parts += string(m.Push([]byte(whole[split:])))
				if parts += string(m.End()); parts != want {
					t.Errorf("%q, %s, divided at %d: %q, not %q", value, how, split, parts, want)
					break
				}
			}
		}
	}
}

func TestCharactersBeyondASCIIAreMasked(t *testing.T) {
	const value = "schlüssel-Ünïcode"
	v := New([]string{value})
	quoted := strings.Trim(strconv.QuoteToASCII(value), `"`)
	var entities strings.Builder
	for _, r := range value {
		fmt.Fprintf(&entities, "&#%d;", r)
	}
	for how, text := range map[string]string{
		"JSON": quoted, "HTML": entities.String(), "Latin-1": latin1(value), "UTF-16": redacttest.UTF16(value, 0, 1), "upper": strings.ToUpper(value), "lower": strings.ToLower(value),
		"hex": hex.EncodeToString([]byte(value)), "percent": percented(value),
	} {
		if got := v.String("x" + text + "y"); strings.Count(got, "*") < len(text)-1 || !strings.HasPrefix(got, "x*") {
			t.Errorf("%s: %q becomes %q", how, text, got)
		}
	}
}

func TestValuesAreMasked(t *testing.T) {
	for _, value := range []string{value, `quo"te\and<&>%41 'x'`, "%%%%25%%", "aaaaaaab", "sk-ünïcode-key", "abcd"} {
		v := New([]string{value})
		for how, text := range honest(value) {
			if (how == "all of JSON" || how == "both") && strings.Contains(value, "ü") || how == "base64 in JSON" && len(value) < 6 {
				continue
			}
			for _, around := range [][2]string{{"", ""}, {"<", ">"}, {value[:3], value[:2]}, {"%", "%"}, {`\`, "&"}} {
				whole := around[0] + text + around[1]
				want := strings.Repeat("*", len(text))
				got := v.String(whole)
				if len(got) != len(whole) || !strings.Contains(got, want) {
					t.Errorf("%q %s in %q: %q", value, how, around, got)
				}
				for split := 1; split < len(whole); split++ {
					m := v.Stream()
					parts := string(m.Push([]byte(whole[:split])))
					parts += string(m.Push([]byte(whole[split:])))
					if parts += string(m.End()); parts != got {
						t.Fatalf("%q %s in %q divided at %d: %q, not %q", value, how, around, split, parts, got)
					}
				}
			}
		}
	}
}

func TestBase64OfMoreIsMasked(t *testing.T) {
	v := New([]string{value})
	for before := range 5 {
		for after := range 5 {
			plain := strings.Repeat("b", before) + value + strings.Repeat("a", after)
			for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
				text := e.EncodeToString([]byte(plain))
				got := v.String(text)
				// All but the characters that other bytes have a part in.
				if n := strings.Count(got, "*"); len(got) != len(text) || n < len(value)*8/6-2 {
					t.Errorf("%d before, %d after: %q of %q", before, after, got, text)
				}
				b, _ := e.DecodeString(strings.ReplaceAll(got, "*", "A"))
				if bytes.Contains(b, []byte(value[2:len(value)-2])) {
					t.Errorf("decodes to %q", b)
				}
			}
		}
	}
}

func TestOnlyValuesAreMasked(t *testing.T) {
	v := New([]string{value, "abcdefgh", "abcdefgh and more of it"})
	for text, want := range map[string]string{
		"":                                      "",
		value[:7]:                               value[:7],
		"abcd efgh %61%62 \\u0061 &#97; &amp; ": "abcd efgh %61%62 \\u0061 &#97; &amp; ",
		"abcdefgh and less":                     "*************less", // the first half of the other, too
		"abcdefgh and more of it!":              "***********************!",
		"xabcdefghabcdefgh!":                    "x****************!",
		"truncated: " + value[:len(value)-2]:    "truncated: " + strings.Repeat("*", len(value)-2),
	} {
		if got := v.String(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	none := New(nil)
	if got := none.String("anything %41"); got != "anything %41" {
		t.Errorf("without values: %q", got)
	}
	same := New([]string{value, value})
	if got := same.String(value); got != strings.Repeat("*", len(value)) {
		t.Errorf("the same value twice: %q", got)
	}
	random := make([]byte, 1<<20)
	_, _ = rand.Read(random)
	m := v.Stream()
	got := append([]byte(nil), m.Push(random)...)
	if got = append(got, m.End()...); !bytes.Equal(got, random) {
		t.Error("bytes that are no value are changed")
	}
}

func TestWhatIsKeptBackIsBounded(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 512)
	for how, text := range map[string]string{
		"escapes":       each(long, "&amp;amp;amp;#%010d;"),
		"gaps":          strings.Repeat("0"+strings.Repeat("\n", maxGap), 1<<15),
		"a broken line": "0=" + strings.Repeat("\r", 1<<19),
		"zeros":         "0" + strings.Repeat("\x00", 1<<19),
		"backslashes":   strings.Repeat(`\`, 1<<19),
		"percent":       "%" + strings.Repeat("25", 1<<18),
	} {
		m := New([]string{long}).Stream()
		most := 0
		for len(text) > 0 {
			n := min(len(text), 1000)
			m.Push([]byte(text[:n]))
			most = max(most, len(m.held))
			text = text[n:]
		}
		if bound := maxSlack + maxWritten*(len(long)*2) + 1000; most > bound {
			t.Errorf("%s: %d bytes are kept back, more than %d", how, most, bound)
		}
	}
}

func TestSpellingsDoNotGrowWithTheValue(t *testing.T) {
	total := func(n int) (bytes int) {
		for _, s := range patterns(strings.Repeat("0123456789abcdef", n/16)) {
			bytes += len(s.text)
		}
		return bytes
	}
	if n := total(maxLong); n > 64*maxLong {
		t.Errorf("%d bytes of spellings of a value of %d", n, maxLong)
	}
	if n := total(8 << 10); n > 6*(8<<10) {
		t.Errorf("%d bytes of spellings of a value of %d", n, 8<<10)
	}
}

func TestJSONOfABufferIsMasked(t *testing.T) {
	v := New([]string{value})
	var numbers []int
	for _, c := range []byte("Bearer " + value) {
		numbers = append(numbers, int(c))
	}
	b, _ := json.MarshalIndent(map[string]any{"type": "Buffer", "data": numbers}, "", "  ")
	if got := v.String(string(b)); strings.Contains(got, strconv.Itoa(int(value[0]))+",\n    "+strconv.Itoa(int(value[1]))) || !strings.Contains(got, `"type": "Buffer"`) {
		t.Errorf("%s", got)
	}
}

func FuzzATextIsTheSameHoweverDivided(f *testing.F) {
	f.Add([]byte("x"+value+"y"+percented(value)), uint8(3))
	f.Add([]byte(value[:9]+value+value[:3]+jsonEscaped(value)[:20]), uint8(1))
	v := New([]string{value, "s3cr3t", "%%%%"})
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		m := Stream{set: v, held: append([]byte(nil), b...)}
		whole := string(m.End())
		n := v.Stream()
		parts := ""
		for rest := b; len(rest) > 0; {
			k := min(len(rest), int(step)+1)
			parts += string(n.Push(rest[:k]))
			rest = rest[k:]
		}
		parts += string(n.End())
		if parts != whole || len(whole) != len(b) || strings.Contains(whole, value) {
			t.Errorf("%q: %q and %q", b, whole, parts)
		}
	})
}
