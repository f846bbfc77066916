// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package aptsource

import (
	"bufio"
	"slices"
	"strings"
)

// Stanza is one paragraph of a deb822 file: fields in their order.
type Stanza []Field

// Field is one field of a stanza; lines of its value are separated by "\n".
type Field struct{ Name, Value string }

// Get returns the value of a field, whatever the case of its name; "" if there is none.
func (s Stanza) Get(name string) string {
	for _, f := range s {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// With returns the stanza with another value of a field, which is added if there is none.
func (s Stanza) With(name, value string) Stanza {
	out := slices.Clone(s)
	for i := range out {
		if strings.EqualFold(out[i].Name, name) {
			out[i].Value = value
			return out
		}
	}
	return append(out, Field{name, value})
}

// Text returns the stanza as deb822.
func (s Stanza) Text() string {
	var b strings.Builder
	for _, f := range s {
		b.WriteString(f.Name + ":")
		for i, line := range strings.Split(f.Value, "\n") {
			if i > 0 {
				b.WriteString("\n")
			}
			b.WriteString(" " + strings.TrimSpace(line))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// ParseDeb822 reads a file of stanzas, such as those that end in .sources. What is no field is left out.
func ParseDeb822(text string) []Stanza {
	var all []Stanza
	var cur Stanza
	end := func() {
		if len(cur) > 0 {
			all = append(all, cur)
		}
		cur = nil
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			end()
		case line[0] == ' ' || line[0] == '\t':
			if len(cur) > 0 {
				cur[len(cur)-1].Value += "\n" + strings.TrimSpace(line)
			}
		default:
			if name, value, ok := strings.Cut(line, ":"); ok {
				cur = append(cur, Field{strings.TrimSpace(name), strings.TrimSpace(value)})
			}
		}
	}
	end()
	return all
}

// oneLineOptions are the options of the old format by their deb822 names.
var oneLineOptions = map[string]string{
	"arch": "Architectures", "signed-by": "Signed-By",
	"check-valid-until": "Check-Valid-Until", "check-date": "Check-Date",
}

// ParseOneLine reads a file with a source on each line, such as those that end in .list, as
// stanzas. Lines of other types than deb, and those that are incomplete, are left out.
func ParseOneLine(text string) []Stanza {
	var all []Stanza
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		if kind != "deb" {
			continue
		}
		s := Stanza{{"Types", "deb"}}
		var options []Field
		if inner, ok := strings.CutPrefix(rest, "["); ok {
			opts, after, ok := strings.Cut(inner, "]")
			if !ok {
				continue
			}
			for _, opt := range strings.Fields(opts) {
				key, value, _ := strings.Cut(opt, "=")
				if name, known := oneLineOptions[strings.ToLower(key)]; known {
					options = append(options, Field{name, strings.Trim(strings.ReplaceAll(value, ",", " "), `"`)})
				}
			}
			rest = after
		}
		fields := strings.Fields(rest)
		if len(fields) < 3 {
			continue
		}
		s = append(s, Field{"URIs", fields[0]}, Field{"Suites", fields[1]}, Field{"Components", strings.Join(fields[2:], " ")})
		all = append(all, append(s, options...))
	}
	return all
}
