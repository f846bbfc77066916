// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"sandpit.dev/network/policy"
)

// spelt is a way to send back a value, of which all bytes but so many at its edges are hidden: those
// that say something of what stands beside the value.
type spelt struct {
	text string
	edge int
}

// each writes each byte of a value by a format.
func each(value, format string) string {
	var out strings.Builder
	for i := range len(value) {
		fmt.Fprintf(&out, format, value[i])
	}
	return out.String()
}

// broken divides a text into lines.
func broken(text string, length int, end string) string {
	var lines []string
	for ; len(text) > length; text = text[length:] {
		lines = append(lines, text[:length])
	}
	return strings.Join(append(lines, text), end)
}

func utf16Of(text string, first, second int) string {
	var out []byte
	for _, u := range utf16.Encode([]rune(text)) {
		pair := []byte{byte(u), byte(u >> 8)}
		out = append(out, pair[first], pair[second])
	}
	return string(out)
}

// chosen are the spellings that a program can have an honest host answer in.
func chosen(value string) map[string]spelt {
	b64 := base64.StdEncoding.EncodeToString
	all := map[string]spelt{
		"upper case":               {strings.ToUpper(value), 0},
		"lower case":               {strings.ToLower(value), 0},
		"lines":                    {broken(value, 5, "\r\n"), 0},
		"percent twice":            {each(value, "%%25%02X"), 0},
		"percent three times":      {each(value, "%%2525%02x"), 0},
		"entities":                 {each(value, "&#%d;"), 0},
		"padded entities":          {each(value, "&#%04d;"), 0},
		"long entities":            {each(value, "&#x%07X;"), 0},
		"entities of entities":     {each(value, "&amp;#%d;"), 0},
		"JSON in JSON":             {each(value, `\\u%04x`), 0},
		"braces":                   {each(value, `\u{%x}`), 0},
		"padded braces":            {each(value, `\u{%06X}`), 0},
		"eight digits":             {each(value, `\U%08x`), 0},
		"x":                        {each(value, `\x%02X`), 0},
		"octal":                    {each(value, `\%03o`), 0},
		"octal of sh":              {each(value, `\0%03o`), 0},
		"quoted-printable":         {each(value, "=%02X"), 0},
		"quoted-printable, broken": {broken(each(value, "=%02X"), 12, "=\r\n"), 0},
		"hex":                      {hex.EncodeToString([]byte(value)), 0},
		"upper hex":                {strings.ToUpper(hex.EncodeToString([]byte(value))), 0},
		"hex with colons":          {strings.TrimSuffix(each(value, "%02x:"), ":"), 0},
		"hex in lines":             {broken(hex.EncodeToString([]byte(value)), 9, "\n"), 0},
		"C":                        {strings.TrimSuffix(each(value, "0x%02x, "), ", "), 2},
		"hex in percent":           {each(hex.EncodeToString([]byte(value)), "%%%02x"), 0},
		"a list":                   {strings.TrimSuffix(each(value, "%d,"), ","), 0},
		"a list with spaces":       {strings.TrimSuffix(each(value, "%d, "), ", "), 0},
		"an indented list":         {strings.TrimSuffix(each(value, "%d,\n      "), ",\n      "), 0},
		"base32":                   {base32.StdEncoding.EncodeToString([]byte(value)), 8},
		"lower base32":             {strings.ToLower(base32.StdEncoding.EncodeToString([]byte(value))), 8},
		"upper base64":             {strings.ToUpper(b64([]byte(value))), 4},
		"base64 of base64":         {b64([]byte(b64([]byte(value)))), 8},
		"base64 in JSON in lines":  {broken(b64([]byte(value)), 6, `\n`), 6},
		"base64 in percent":        {broken(b64([]byte(value)), 6, "%0D%0A"), 12},
		"base64 in HTML":           {broken(b64([]byte(value)), 6, "&#10;"), 6},
		"base64 in YAML":           {broken(b64([]byte(value)), 6, "\n      "), 6},
	}
	for _, length := range []int{1, 2, 10, 76} {
		for before := range 3 {
			text := broken(b64([]byte(strings.Repeat("b", 72+before)+value)), length, "\r\n")
			at := (72 + before) / 3 * 4
			at += at / length * 2
			all[fmt.Sprintf("base64 in lines of %d, %d before", length, before)] = spelt{text[at:], 8 + 16/length}
		}
	}
	for order, bytes := range map[string][2]int{"LE": {0, 1}, "BE": {1, 0}} {
		wide := func(text string) string { return utf16Of(text, bytes[0], bytes[1]) }
		all["UTF-16"+order] = spelt{wide(value), 1}
		all["upper UTF-16"+order] = spelt{wide(strings.ToUpper(value)), 1}
		all["percent in UTF-16"+order] = spelt{wide(percented(value)), 1}
		all["JSON in UTF-16"+order] = spelt{wide(jsonEscaped(value)), 1}
		all["base64 in UTF-16"+order] = spelt{wide(b64([]byte(value))), 8}
		all["base64 of UTF-16"+order] = spelt{b64([]byte(wide(value))), 6}
		all["hex of UTF-16"+order] = spelt{hex.EncodeToString([]byte(wide(value))), 2}
	}
	var utf32 strings.Builder
	for _, r := range value {
		utf32.Write([]byte{0, 0, 0, byte(r)})
	}
	all["UTF-32"] = spelt{utf32.String(), 3}
	var printable strings.Builder
	w := quotedprintable.NewWriter(&printable)
	_, _ = io.WriteString(w, strings.Repeat("é", 12)+value) // it breaks lines of 76
	_ = w.Close()
	all["a broken line"] = spelt{printable.String()[12*6:], 0}
	return all
}

// check reports what is wrong with a text in which a spelling stood between two others.
func (s spelt) check(before, got, after string) string {
	inner, begins := strings.CutPrefix(got, before)
	inner, ends := strings.CutSuffix(inner, after)
	if !begins || !ends || len(inner) != len(s.text) {
		return fmt.Sprintf("what stands beside it is changed: %q", got)
	}
	if n := strings.Count(inner, "*"); n < len(inner)-s.edge {
		return fmt.Sprintf("%d of %d bytes are hidden of %q: %q", n, len(inner), s.text, inner)
	}
	return ""
}

func TestEverySpellingIsHidden(t *testing.T) {
	for _, value := range []string{value, "sk-ABCdef0123456789", "0xdeadbeef-0000", "a b:c,d;e|f%41&amp;g", `C:\x\101 +/=`} {
		v := newVeil([]string{"another value", value})
		for how, s := range chosen(value) {
			before, after := "<begin> ", " <end>"
			whole := before + s.text + after
			want := v.text(whole)
			if wrong := s.check(before, want, after); wrong != "" {
				t.Errorf("%q, %s: %s", value, how, wrong)
				continue
			}
			for split := 1; split < len(whole); split++ {
				m := masker{veil: v}
				parts := string(m.push([]byte(whole[:split])))
				parts += string(m.push([]byte(whole[split:])))
				if parts += string(m.rest()); parts != want {
					t.Errorf("%q, %s, divided at %d: %q, not %q", value, how, split, parts, want)
					break
				}
			}
		}
	}
}

func TestCharactersBeyondASCIIAreHidden(t *testing.T) {
	const value = "schlüssel-Ünïcode"
	v := newVeil([]string{value})
	quoted := strings.Trim(strconv.QuoteToASCII(value), `"`)
	var entities strings.Builder
	for _, r := range value {
		fmt.Fprintf(&entities, "&#%d;", r)
	}
	for how, text := range map[string]string{
		"JSON": quoted, "HTML": entities.String(), "Latin-1": latin1(value), "UTF-16": utf16Of(value, 0, 1), "upper": strings.ToUpper(value), "lower": strings.ToLower(value),
		"hex": hex.EncodeToString([]byte(value)), "percent": percented(value),
	} {
		if got := v.text("x" + text + "y"); strings.Count(got, "*") < len(text)-1 || !strings.HasPrefix(got, "x*") {
			t.Errorf("%s: %q becomes %q", how, text, got)
		}
	}
}

func TestWhatAProgramAsksForIsHiddenInEverySpelling(t *testing.T) {
	type answer struct {
		body string
		step int
	}
	next := make(chan answer, 1)
	g := guard(t, restricted("allowed.example"), func(w http.ResponseWriter, r *http.Request) {
		a := <-next
		w.Header().Set("Content-Type", "text/plain")
		for body := a.body; body != ""; {
			n := min(a.step, len(body))
			if _, err := io.WriteString(w, body[:n]); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			body = body[n:]
		}
	}, secret("KEY", "allowed.example"))
	const block = 4096
	for _, two := range []bool{false, true} {
		c := g.client(web, two)
		for how, s := range chosen(value) {
			for _, step := range []int{1 << 20, 1, 6, block} {
				before, after := "<begin> ", " <end>"
				if step == block { // it stands on the border
					before = strings.Repeat(".", block-len(s.text)/2)
				}
				next <- answer{before + s.text + after, step}
				status, _, body := g.do(c, "GET", "https://allowed.example/")
				if wrong := s.check(before, body, after); status != 200 || wrong != "" {
					t.Errorf("%s, %d bytes at a time: %d, %.300s", how, step, status, wrong)
				}
			}
		}
	}
}

func TestTheProgramDoesNotChooseTheCharacterSet(t *testing.T) {
	kind := make(chan string, 1)
	g := guard(t, restricted("allowed.example"), func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Accept-Charset", "A-Im", "Range", "If-Range"} {
			if got := r.Header.Values(name); len(got) > 0 {
				t.Errorf("the host got %s: %q", name, got)
			}
		}
		w.Header()["Content-Type"] = strings.Split(<-kind, "\n")
		_, _ = io.WriteString(w, "whatever "+r.Header.Get("Authorization"))
	}, secret("KEY", "allowed.example"))
	c := g.client(web, true)
	get := func(of string) (int, string) {
		kind <- of
		status, _, body := g.do(c, "GET", "https://allowed.example/", func(r *http.Request) {
			for _, name := range []string{"Accept-Charset", "accept-charset"} {
				r.Header[name] = []string{"utf-16"}
			}
			r.Header.Set("A-IM", "vcdiff")
		})
		return status, body
	}
	for _, of := range []string{
		"text/plain; charset=utf-16", "text/plain;charset=UTF-16LE", `text/plain; charset="utf-16be"`, "text/html; x=y; Charset = UTF-7", "application/json; charset=utf-32",
		"text/plain; charset=ibm037", "text/plain; charset=cp1047", "text/plain; charset=ebcdic-cp-us", "text/plain; charset=ucs-2", "text/plain; charset=iso-10646-ucs-4",
		"text/plain; charset=hz-gb-2312", "text/plain; charset=iso-2022-kr", "text/plain; charset=scsu", "text/plain; charset=no-such",
		"text/plain; charset=utf-8; charset=utf-16", "text/plain; charset*=us-ascii'en'utf-16", "text/plain\ntext/plain; charset=utf-16", "charset=utf-16", "text/plain, text/html; charset='utf-16'",
	} {
		if status, body := get(of); status != 502 || !strings.Contains(body, "encoding") || strings.Contains(body, "whatever") {
			t.Errorf("%q: %d %q", of, status, body)
		}
	}
	g.noted("tcp", "allowed.example", policy.Encoding)
	for _, of := range []string{
		"text/plain", "", "text/html; charset=utf-8", `application/json;charset="UTF-8"`, "text/plain; charset=ISO-8859-1", "text/plain; charset=windows-1252", "text/plain; charset=",
		"text/html; charset=utf-8; charset=utf-8", "text/plain; charset=Shift_JIS", "multipart/mixed; boundary=charset", "text/plain; charset=us-ascii",
	} {
		if status, body := get(of); status != 200 || body != "whatever Bearer "+strings.Repeat("*", len(value)) {
			t.Errorf("%q: %d %q", of, status, body)
		}
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
		m := masker{veil: newVeil([]string{long})}
		most := 0
		for len(text) > 0 {
			n := min(len(text), 1000)
			m.push([]byte(text[:n]))
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
		for _, s := range spellings(strings.Repeat("0123456789abcdef", n/16)) {
			bytes += len(s.text)
		}
		return bytes
	}
	if n := total(maxRare); n > 64*maxRare {
		t.Errorf("%d bytes of spellings of a value of %d", n, maxRare)
	}
	if n := total(8 << 10); n > 6*(8<<10) {
		t.Errorf("%d bytes of spellings of a value of %d", n, 8<<10)
	}
}

func TestJSONOfABufferIsHidden(t *testing.T) {
	v := newVeil([]string{value})
	var numbers []int
	for _, c := range []byte("Bearer " + value) {
		numbers = append(numbers, int(c))
	}
	b, _ := json.MarshalIndent(map[string]any{"type": "Buffer", "data": numbers}, "", "  ")
	if got := v.text(string(b)); strings.Contains(got, strconv.Itoa(int(value[0]))+",\n    "+strconv.Itoa(int(value[1]))) || !strings.Contains(got, `"type": "Buffer"`) {
		t.Errorf("%s", got)
	}
}
