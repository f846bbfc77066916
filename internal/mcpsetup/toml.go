// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpsetup

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// mergeTOML puts a table in the place of the one under the two keys, with the tables
// below that, or at the end. All other text stays as it is.
func mergeTOML(src []byte, key, name string, entry object) ([]byte, error) {
	block := tomlTable(key, name, entry)
	if bytes.Contains(src, []byte("\r\n")) {
		block = strings.ReplaceAll(block, "\n", "\r\n")
	}
	lines := bytes.SplitAfter(src, []byte("\n"))
	var out [][]byte
	place, dropping := -1, false
	for i, headers := 0, tomlHeaders(lines); i < len(lines); i++ {
		if keys, ok := headers[i]; ok {
			ours := len(keys) >= 2 && keys[0] == key && keys[1] == name
			if dropping && !ours { // what stands above the next table is that one's
				out = append(out, lines[lastWith(lines, i)+1:i]...)
			}
			if dropping = ours; ours && place < 0 {
				place = len(out)
			}
		}
		if !dropping {
			out = append(out, lines[i])
		}
	}
	if dropping {
		out = append(out, lines[lastWith(lines, len(lines))+1:]...)
	}
	if place >= 0 {
		return bytes.Join(slices.Insert(out, place, []byte(block)), nil), nil
	}
	text := bytes.TrimRight(src, " \t\r\n")
	if len(text) > 0 {
		block = tomlLineEnd(src) + tomlLineEnd(src) + block
	}
	return append(slices.Clip(text), block...), nil
}

func tomlLineEnd(src []byte) string {
	if bytes.Contains(src, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// lastWith is the last line before end that has more than a comment.
func lastWith(lines [][]byte, end int) int {
	for i := end - 1; i >= 0; i-- {
		if text := bytes.TrimSpace(lines[i]); len(text) > 0 && text[0] != '#' {
			return i
		}
	}
	return -1
}

// tomlTable is a table as text.
func tomlTable(key, name string, entry object) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s.%s]\n", key, name)
	for _, m := range entry {
		fmt.Fprintf(&b, "%s = %s\n", m.key, tomlValue(m.value))
	}
	return b.String()
}

// tomlValue is one of the kinds that entries have. Texts of JSON are texts of TOML.
func tomlValue(v any) string {
	o, ok := v.(object)
	if !ok {
		var all []string
		if all, ok = v.([]string); !ok {
			return string(compactJSON(v))
		}
		var texts []string
		for _, s := range all {
			texts = append(texts, string(compactJSON(s)))
		}
		return "[" + strings.Join(texts, ", ") + "]"
	}
	var parts []string
	for _, m := range o {
		parts = append(parts, string(compactJSON(m.key))+" = "+tomlValue(m.value))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

// tomlHeaders finds the lines that begin a table, and its keys. Lines that only look like a
// header are in a text of several lines or in an array.
func tomlHeaders(lines [][]byte) map[int][]string {
	headers := make(map[int][]string)
	s := tomlScan{}
	for i, line := range lines {
		if s.quote == "" && s.depth == 0 {
			if text := bytes.TrimSpace(line); len(text) > 0 && text[0] == '[' {
				headers[i] = tomlKeys(string(bytes.Trim(bytes.TrimSpace(withoutComment(text)), "[] \t")))
				continue
			}
		}
		s.line(line)
	}
	return headers
}

// begins reports whether a header begins with keys.
func begins(headers map[int][]string, keys ...string) bool {
	for _, h := range headers {
		if len(h) >= len(keys) && slices.Equal(h[:len(keys)], keys) {
			return true
		}
	}
	return false
}

// tomlScan knows where in a value a line ends.
type tomlScan struct {
	quote string // of the text that goes on: """ or '''
	depth int    // of the arrays and tables that do
}

func (s *tomlScan) line(b []byte) {
	for len(b) > 0 {
		switch {
		case s.quote != "":
			switch {
			case b[0] == '\\' && s.quote == `"""` && len(b) > 1:
				b = b[2:]
			case bytes.HasPrefix(b, []byte(s.quote)):
				b = bytes.TrimLeft(b, s.quote[:1]) // up to two more belong to the text
				s.quote = ""
			default:
				b = b[1:]
			}
		case b[0] == '#':
			return
		case bytes.HasPrefix(b, []byte(`"""`)), bytes.HasPrefix(b, []byte("'''")):
			s.quote, b = string(b[:3]), b[3:]
		case b[0] == '"', b[0] == '\'':
			b = afterString(b)
		case b[0] == '[', b[0] == '{':
			s.depth++
			b = b[1:]
		case b[0] == ']', b[0] == '}':
			s.depth--
			b = b[1:]
		default:
			b = b[1:]
		}
	}
}

// afterString is what follows a text of one line.
func afterString(b []byte) []byte {
	for i := 1; i < len(b); i++ {
		switch {
		case b[i] == '\\' && b[0] == '"':
			i++
		case b[i] == b[0]:
			return b[i+1:]
		}
	}
	return nil
}

// withoutComment is a header without what stands behind it.
func withoutComment(b []byte) []byte {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '#':
			return b[:i]
		case '"', '\'':
			i = len(b) - len(afterString(b[i:])) - 1
		}
	}
	return b
}

// tomlKeys are the keys of a header.
func tomlKeys(text string) []string {
	var keys []string
	for text != "" {
		var key string
		if text[0] == '"' || text[0] == '\'' {
			rest := string(afterString([]byte(text)))
			key, text = text[1:max(1, len(text)-len(rest)-1)], rest
		} else {
			n := strings.IndexByte(text, '.')
			if n < 0 {
				n = len(text)
			}
			key, text = strings.TrimSpace(text[:n]), text[n:]
		}
		keys = append(keys, key)
		text = strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(text, " \t"), "."), " \t")
	}
	return keys
}

// readTOML reads a whole file.
func readTOML(src []byte) (map[string]any, error) {
	var all map[string]any
	if err := toml.Unmarshal(src, &all); err != nil {
		if at, ok := errors.AsType[toml.ParseError](err); ok { // its text quotes the file
			return nil, fmt.Errorf("line %d: it is not TOML", at.Position.Line)
		}
		return nil, errors.New("it is not TOML")
	}
	if all == nil {
		all = map[string]any{}
	}
	return all, nil
}
