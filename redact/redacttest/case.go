// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package redacttest tries every spelling of values at a place where they could come out,
// and compares what is masked with the table of package redact. Its spellings are written
// without that package's code.
package redacttest

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"mime/quotedprintable"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"sandpit.dev/redact"
)

// Case is a value in one spelling.
type Case struct {
	Spelling redact.Spelling
	Name     string
	Text     string
	Edge     int // bytes that may stay: they also say something of what stands beside the value
}

// Cases returns a value in all spellings, several of some.
func Cases(value string) []Case {
	c := cases{value: value, upper: strings.ToUpper(value)}
	c.texts()
	c.escapes()
	c.numbers()
	c.encodings()
	c.wide()
	c.parts()
	return c.all
}

type cases struct {
	value, upper string
	all          []Case
}

func (c *cases) add(s redact.Spelling, name, text string, edge int) {
	c.all = append(c.all, Case{s, name, text, edge})
}

func (c *cases) texts() {
	v := c.value
	c.add(redact.Plain, "itself", v, 0)
	if t := strings.TrimRight(v, "\r\n"); t != v {
		c.add(redact.Trimmed, "without its end", t, 0)
	}
	if strings.Contains(v, "\n") {
		c.add(redact.Terminal, "at a terminal", strings.ReplaceAll(v, "\n", "\r\n"), 0)
	}
	c.add(redact.Case, "upper case", c.upper, 0)
	c.add(redact.Case, "lower case", strings.ToLower(v), 0)
	mixed := []rune(v)
	for i := 0; i < len(mixed); i += 3 {
		if unicode.IsLower(mixed[i]) {
			mixed[i] = unicode.ToUpper(mixed[i])
		} else {
			mixed[i] = unicode.ToLower(mixed[i])
		}
	}
	c.add(redact.MixedCase, "some letters in the other case", string(mixed), 0)
	c.add(redact.Broken, "lines", broken(v, 5, "\r\n"), 0)
}

func (c *cases) escapes() {
	v := c.value
	inJSON, _ := json.Marshal(v)
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(inJSON))
	for name, text := range map[string]string{"JSON": plain, "JSON for HTML": string(inJSON), "Go": strconv.Quote(v)} {
		c.add(redact.Quoted, name, text[1:len(text)-1], 0)
	}
	c.add(redact.QuotedASCII, "ASCII in Go", strings.Trim(strconv.QuoteToASCII(v), `"`), 0)
	c.add(redact.QuotedASCII, "ASCII in JSON", strings.Trim(string(asciiOnly(plain)), `"`), 0)
	c.add(redact.Shell, "a shell's word", strings.ReplaceAll(v, "'", `'\''`), 0)
	c.add(redact.Shell, "a shell's word in two quotes", strings.ReplaceAll(v, "'", `'"'"'`), 0)
	c.add(redact.HTML, "HTML", html.EscapeString(v), 0)
	c.add(redact.HTML, "HTML of Python", strings.NewReplacer("&#34;", "&quot;", "&#39;", "&#x27;").Replace(html.EscapeString(v)), 0)
	component := strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(url.QueryEscape(v))
	for name, text := range map[string]string{
		"query": url.QueryEscape(v), "path": url.PathEscape(v), "component": component,
		"path of Python": strings.NewReplacer("+", "%20", "%2F", "/").Replace(url.QueryEscape(v)),
	} {
		c.add(redact.Percent, name, text, 0)
		c.add(redact.Percent, "lower "+name, lowerPercent(text), 0)
	}

	var printable strings.Builder
	w := quotedprintable.NewWriter(&printable)
	_, _ = io.WriteString(w, strings.Repeat("é", 12)+v) // it breaks lines of 76
	_ = w.Close()
	for name, text := range map[string]string{
		"percent": each(v, "%%%02X"), "JSON throughout": each(v, `\u%04x`), "braces": each(v, `\u{%x}`), "padded braces": each(v, `\u{%06X}`),
		"eight digits": each(v, `\U%08x`), "x": each(v, `\x%02X`), "octal": each(v, `\%03o`), "octal of sh": each(v, `\0%03o`),
		"entities": each(v, "&#%d;"), "padded entities": each(v, "&#%04d;"), "long entities": each(v, "&#x%07X;"),
		"quoted-printable": each(v, "=%02X"), "quoted-printable, broken": broken(each(v, "=%02X"), 12, "=\r\n"), "a broken line": printable.String()[12*6:],
	} {
		c.add(redact.Escaped, name, text, 0)
	}
	for name, text := range map[string]string{
		"percent twice": each(v, "%%25%02X"), "percent three times": each(v, "%%2525%02x"), "entities of entities": each(v, "&amp;#%d;"), "JSON in JSON": each(v, `\\u%04x`),
	} {
		c.add(redact.Nested, name, text, 0)
	}
}

func (c *cases) numbers() {
	text := hex.EncodeToString([]byte(c.value))
	c.add(redact.Hex, "hex", text, 0)
	c.add(redact.Hex, "upper hex", strings.ToUpper(text), 0)
	for name, text := range map[string]string{
		"hex with colons": strings.TrimSuffix(each(c.value, "%02x:"), ":"), "hex in lines": broken(text, 9, "\n"), "hex in percent": each(text, "%%%02x"),
		"C": strings.TrimSuffix(each(c.value, "0x%02x, "), ", "), "a list": strings.TrimSuffix(each(c.value, "%d,"), ","),
		"a list with spaces": strings.TrimSuffix(each(c.value, "%d, "), ", "), "an indented list": strings.TrimSuffix(each(c.value, "%d,\n      "), ",\n      "),
	} {
		c.add(redact.HexList, name, text, 2)
	}
}

func (c *cases) encodings() {
	v, b64 := c.value, base64.StdEncoding.EncodeToString
	for name, e := range map[string]*base64.Encoding{"base64": base64.StdEncoding, "raw base64": base64.RawStdEncoding, "base64 of URLs": base64.URLEncoding} {
		for before := range 3 {
			text := e.EncodeToString([]byte("bb"[:before] + v + "aa"[before:]))
			c.add(redact.Base64, fmt.Sprintf("%s, %d before", name, before), text, 10)
		}
	}
	text := b64([]byte(v))
	for _, width := range []int{64, 76} {
		c.add(redact.Base64Lines, fmt.Sprintf("base64 in lines of %d", width), broken(text, width, "\n"), 4)
		c.add(redact.Base64Lines, fmt.Sprintf("base64 in lines of %d at a terminal", width), broken(text, width, "\r\n"), 4)
	}
	for name, text := range map[string]string{
		"base64 in JSON in lines": broken(text, 6, `\n`), "base64 in percent": broken(text, 6, "%0D%0A"), "base64 in HTML": broken(text, 6, "&#10;"), "base64 in YAML": broken(text, 6, "\n      "),
		"upper base64": strings.ToUpper(text),
	} {
		c.add(redact.Base64AnyLines, name, text, 12)
	}
	for _, length := range []int{1, 2, 10, 76} {
		for before := range 3 {
			text := broken(b64([]byte(strings.Repeat("b", 72+before)+v)), length, "\r\n")
			at := (72 + before) / 3 * 4
			at += at / length * 2
			c.add(redact.Base64AnyLines, fmt.Sprintf("base64 in lines of %d, %d before", length, before), text[at:], 8+16/length)
		}
	}
	c.add(redact.Base64Twice, "base64 of base64", b64([]byte(text)), 8)
	c.add(redact.Base32, "base32", base32.StdEncoding.EncodeToString([]byte(v)), 8)
	c.add(redact.Base32, "lower base32", strings.ToLower(base32.StdEncoding.EncodeToString([]byte(v))), 8)
}

func (c *cases) wide() {
	b64 := base64.StdEncoding.EncodeToString
	for order, bytes := range map[string][2]int{"LE": {0, 1}, "BE": {1, 0}} {
		wide := func(text string) string { return UTF16(text, bytes[0], bytes[1]) }
		c.add(redact.Wide, "UTF-16"+order, wide(c.value), 1)
		c.add(redact.Wide, "upper UTF-16"+order, wide(c.upper), 1)
		c.add(redact.Wide, "percent in UTF-16"+order, wide(each(c.value, "%%%02X")), 1)
		c.add(redact.Wide, "JSON in UTF-16"+order, wide(each(c.value, `\u%04X`)), 1)
		c.add(redact.Wide, "base64 in UTF-16"+order, wide(b64([]byte(c.value))), 8)
		c.add(redact.Wide, "base64 of UTF-16"+order, b64([]byte(wide(c.value))), 6)
		c.add(redact.Wide, "hex of UTF-16"+order, hex.EncodeToString([]byte(wide(c.value))), 2)
	}
	if utf8.RuneCountInString(c.value) == len(c.value) {
		var utf32 strings.Builder
		for _, r := range c.value {
			utf32.Write([]byte{0, 0, 0, byte(r)})
		}
		c.add(redact.Wide, "UTF-32", utf32.String(), 3)
	}
}

func (c *cases) parts() {
	v := c.value
	half := len(v) / 2
	for !utf8.RuneStart(v[half]) {
		half++
	}
	if len(v) < 16 { // half of it is too short to be looked for
		return
	}
	c.add(redact.Cut, "cut off", v[:len(v)-3]+"…", len("…"))
	c.add(redact.Half, "its first half", v[:half+1], 0)
	c.add(redact.Slice, "its second half", v[half+1:], 0)
	c.add(redact.Slice, "its first third", v[:len(v)/3], 0)
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

// UTF16 returns a text in UTF-16, with the bytes of a unit in an order.
func UTF16(text string, first, second int) string {
	var out []byte
	for _, u := range utf16.Encode([]rune(text)) {
		pair := []byte{byte(u), byte(u >> 8)}
		out = append(out, pair[first], pair[second])
	}
	return string(out)
}

// asciiOnly returns JSON with escapes for what is not ASCII.
func asciiOnly(text string) (out []byte) {
	for _, u := range utf16.Encode([]rune(text)) {
		if u < utf8.RuneSelf {
			out = append(out, byte(u))
		} else {
			out = fmt.Appendf(out, `\u%04x`, u)
		}
	}
	return out
}

// lowerPercent returns a text with small letters in its percent-encodings.
func lowerPercent(text string) string {
	out := []byte(text)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i+1:], strings.ToLower(text[i+1:i+3]))
		}
	}
	return string(out)
}
