// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Forms returns the texts that the exact search looks for at the place: a value, and what
// it is in the spellings that are masked there.
func (p Place) Forms(value string) []string {
	out := []string{value}
	values := []string{value}
	if t := trimmed(value)[0]; t != value {
		values = append(values, t)
	}
	for s := range table {
		r := &table[s]
		least, most, longest := minForm, unbounded, unbounded
		if p.streams() {
			least, most, longest = r.least, r.most, max(maxGrowth*len(value), maxShort)
		} else if len(value) > maxWhole {
			continue // no text there has room for it
		}
		if r.at[p] != yes || r.forms == nil || len(value) > most {
			continue
		}
		for _, v := range values {
			for _, f := range r.forms(v) {
				if least <= len(f) && len(f) <= longest && !slices.Contains(out, f) {
					out = append(out, f)
				}
			}
		}
	}
	return out
}

func trimmed(v string) []string { return []string{strings.TrimRight(v, "\r\n")} }

func terminal(v string) []string { return []string{strings.ReplaceAll(v, "\n", "\r\n")} }

func cases(v string) []string { return []string{strings.ToLower(v), strings.ToUpper(v)} }

// quoted returns v as it stands between quotes, without them.
func quoted(v string) []string {
	out := []string{strip(strconv.Quote(v))}
	if utf8.ValidString(v) { // JSON would change it
		out = append(out, quotedJSON(v, false), quotedJSON(v, true))
	}
	return out
}

func quotedASCII(v string) []string {
	out := []string{strip(strconv.QuoteToASCII(v))}
	if !utf8.ValidString(v) {
		return out
	}
	for _, html := range []bool{false, true} {
		var b strings.Builder
		for _, r := range quotedJSON(v, html) {
			if r < utf8.RuneSelf {
				b.WriteRune(r)
				continue
			}
			for _, u := range utf16.AppendRune(nil, r) {
				b.WriteString("\\u")
				b.WriteString(strconv.FormatUint(1<<16|uint64(u), 16)[1:])
			}
		}
		out = append(out, b.String())
	}
	return out
}

func quotedJSON(v string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(v) // a string always has JSON
	return strip(strings.TrimSuffix(b.String(), "\n"))
}

// strip returns a quoted text without its quotes.
func strip(quoted string) string { return quoted[1 : len(quoted)-1] }

func shell(v string) []string {
	return []string{strings.ReplaceAll(v, "'", `'\''`), strings.ReplaceAll(v, "'", `'"'"'`)}
}

func escapedHTML(v string) []string {
	v = strings.ReplaceAll(v, "&", "&amp;")
	v = strings.ReplaceAll(v, "<", "&lt;")
	v = strings.ReplaceAll(v, ">", "&gt;")
	out := []string{v}
	for _, quotes := range [][2]string{{"&#34;", "&#39;"}, {"&quot;", "&#x27;"}} {
		out = append(out, strings.ReplaceAll(strings.ReplaceAll(v, `"`, quotes[0]), "'", quotes[1]))
	}
	return out
}

// percent returns v as the common libraries encode the parts of a URL: they differ in what
// they leave as it is.
func percent(v string) (out []string) {
	for _, digits := range []string{"0123456789ABCDEF", "0123456789abcdef"} {
		for _, keep := range []string{"-_.~", "-_.~/", "-_.~$&+=:@", "-_.~!*'()"} {
			out = append(out, percentEncode(v, keep, digits))
		}
		out = append(out, strings.ReplaceAll(percentEncode(v, "-_.~ ", digits), " ", "+"))
	}
	return out
}

func percentEncode(v, keep, digits string) string {
	var b strings.Builder
	for i := range len(v) {
		c := v[i]
		switch {
		case '0' <= c && c <= '9', 'a' <= c|0x20 && c|0x20 <= 'z', strings.IndexByte(keep, c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}

func hexadecimal(v string) []string {
	text := hex.EncodeToString([]byte(v))
	return []string{text, strings.ToUpper(text)}
}

// base64Cores returns what base64 makes of v in the midst of other bytes, one for each place in a
// group that it can begin at.
func base64Cores(v string) (out []string) {
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			if c := base64Core(e, v, shift); len(c) >= minCoded {
				out = append(out, c)
			}
		}
	}
	return out
}

// base64Lines returns v in base64 as programs break it into lines.
func base64Lines(v string) (out []string) {
	for _, width := range []int{64, 76} {
		rest := base64Core(base64.RawStdEncoding, v, 0)
		var lines []string
		for ; len(rest) > width; rest = rest[width:] {
			lines = append(lines, rest[:width])
		}
		if lines = append(lines, rest); len(lines) > 1 {
			out = append(out, strings.Join(lines, "\n"), strings.Join(lines, "\r\n"))
		}
	}
	return out
}

// base64Core returns what base64 makes of a value in the midst of other bytes, shift of them
// in the same group before it: those characters that only the value decides.
func base64Core(e *base64.Encoding, value string, shift int) string {
	return Core(e.EncodeToString([]byte(strings.Repeat("\x00", shift)+value)), 6, shift, len(value))
}

// Core returns those characters of an encoded text, of so many bits each, that only a value of
// length bytes decides that has shift bytes before it.
func Core(text string, bits, shift, length int) string {
	begin, end := (8*shift+bits-1)/bits, 8*(shift+length)/bits
	if begin >= end {
		return ""
	}
	return text[begin:end]
}
