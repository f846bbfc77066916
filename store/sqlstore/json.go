// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"sandpit.dev/sandbox"
	"sandpit.dev/skill"
)

// The JSON of this package's columns, for two things that the standard library
// does not do. Bytes that are no UTF-8 (a file's name may be any bytes) come
// back as they were: such a byte b is written as the lone surrogate U+DC00+b,
// which JSON can spell and no text contains. And an object has one spelling:
// names sorted, no space, no quote inside a string but as \u0022. So the text
// "name":"value" occurs in an object if, and only if, it has that member.

const hexDigits = "0123456789abcdef"

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < 0x20 || c == '"' || c == '\\' || c == 0x7f {
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			} else {
				b = append(b, c)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b = append(b, '\\', 'u', 'd', 'c', hexDigits[c>>4], hexDigits[c&15])
		} else {
			b = append(b, s[i:i+size]...)
		}
		i += size
	}
	return append(b, '"')
}

// labelsText is the JSON object of m.
func labelsText(m map[string]string) string {
	if len(m) == 0 {
		return "{}"
	}
	b := make([]byte, 0, 32*len(m))
	for i, name := range slices.Sorted(maps.Keys(m)) {
		b = append(b, "{,"[min(i, 1)])
		b = appendString(b, name)
		b = append(b, ':')
		b = appendString(b, m[name])
	}
	return string(append(b, '}'))
}

// labelText is how the JSON of an object with this member contains it.
func labelText(name, value string) string {
	return string(appendString(append(appendString(nil, name), ':'), value))
}

// changesText is a JSON array of [path, action, size], with a 1 more where the
// path is escaped.
func changesText(changes []sandbox.FileChange) string {
	if len(changes) == 0 {
		return "[]"
	}
	b := make([]byte, 0, 48*len(changes))
	for i, c := range changes {
		b = append(b, "[,"[min(i, 1)], '[')
		b = appendString(b, c.Path)
		b = append(b, ',')
		b = appendString(b, c.Action)
		b = append(b, ',')
		b = strconv.AppendInt(b, c.Size, 10)
		if c.Escaped {
			b = append(b, ",1"...)
		}
		b = append(b, ']')
	}
	return string(append(b, ']'))
}

// mountsText is a JSON array of [volume, name, path, sub, 1 if read-only].
func mountsText(mounts []sandbox.Mount) string {
	if len(mounts) == 0 {
		return noMounts
	}
	b := make([]byte, 0, 96*len(mounts))
	for i, m := range mounts {
		b = append(b, "[,"[min(i, 1)], '[')
		for _, s := range []string{string(m.Volume), m.Name, m.Path, m.Sub} {
			b = append(appendString(b, s), ',')
		}
		b = append(strconv.AppendInt(b, truth(m.ReadOnly), 10), ']')
	}
	return string(append(b, ']'))
}

// listText is a JSON array of strings.
func listText(list []string) string {
	if len(list) == 0 {
		return "[]"
	}
	var b []byte
	for i, s := range list {
		b = appendString(append(b, "[,"[min(i, 1)]), s)
	}
	return string(append(b, ']'))
}

// skillFilesText is a JSON array of [path, size, 1 if it can be run].
func skillFilesText(files []skill.FileInfo) string {
	if len(files) == 0 {
		return "[]"
	}
	b := make([]byte, 0, 48*len(files))
	for i, f := range files {
		b = append(b, "[,"[min(i, 1)], '[')
		b = append(appendString(b, f.Path), ',')
		b = append(strconv.AppendInt(b, f.Size, 10), ',')
		b = append(strconv.AppendInt(b, truth(f.Exec), 10), ']')
	}
	return string(append(b, ']'))
}

// skillsText is a JSON array of [id, name, digest, time in microseconds].
func skillsText(skills []sandbox.Skill) string {
	if len(skills) == 0 {
		return noSkills
	}
	b := make([]byte, 0, 160*len(skills))
	for i, s := range skills {
		b = append(b, "[,"[min(i, 1)], '[')
		for _, text := range []string{s.ID, s.Name, s.Digest} {
			b = append(appendString(b, text), ',')
		}
		b = append(strconv.AppendInt(b, micros(s.InstalledAt), 10), ']')
	}
	return string(append(b, ']'))
}

// reader reads what the functions above wrote, and nothing more.
type reader struct {
	text string
	err  error
}

var errJSON = errors.New("a column does not hold the JSON that was written there")

// skip passes over one of the bytes and returns it; 0 after an error.
func (r *reader) skip(oneOf string) byte {
	if r.err == nil && r.text != "" && strings.IndexByte(oneOf, r.text[0]) >= 0 {
		c := r.text[0]
		r.text = r.text[1:]
		return c
	}
	r.fail()
	return 0
}

func (r *reader) fail() {
	if r.err == nil {
		r.err = fmt.Errorf("%w (%d bytes before its end)", errJSON, len(r.text))
	}
}

func (r *reader) string() string {
	r.skip(`"`)
	end := strings.IndexByte(r.text, '"') // a quote inside is never spelt so
	if r.err != nil || end < 0 {
		r.fail()
		return ""
	}
	s := r.text[:end]
	r.text = r.text[end+1:]
	if strings.IndexByte(s, '\\') < 0 {
		return strings.Clone(s) // not the whole column for one name
	}
	b := make([]byte, 0, len(s))
	for {
		plain, rest, escaped := strings.Cut(s, `\`)
		b = append(b, plain...)
		if !escaped {
			return string(b)
		}
		if len(rest) < 5 || rest[0] != 'u' {
			r.fail()
			return ""
		}
		n, err := strconv.ParseUint(rest[1:5], 16, 16)
		switch {
		case err != nil:
			r.fail()
			return ""
		case utf16.IsSurrogate(rune(n)):
			b = append(b, byte(n))
		default:
			b = utf8.AppendRune(b, rune(n))
		}
		s = rest[5:]
	}
}

func (r *reader) number() int64 {
	end := 0
	for end < len(r.text) && strings.IndexByte("-0123456789", r.text[end]) >= 0 {
		end++
	}
	n, err := strconv.ParseInt(r.text[:end], 10, 64)
	if err != nil {
		r.fail()
	}
	r.text = r.text[end:]
	return n
}

func parseLabels(text string) (map[string]string, error) {
	if text == "{}" {
		return nil, nil
	}
	m := make(map[string]string, strings.Count(text, `":"`))
	r := reader{text: text}
	for r.skip("{,") != 0 {
		name := r.string()
		r.skip(":")
		m[name] = r.string()
		if r.text == "}" {
			break
		}
	}
	return m, r.err
}

func parseChanges(text string) ([]sandbox.FileChange, error) {
	if text == "[]" {
		return nil, nil
	}
	var out []sandbox.FileChange
	r := reader{text: text}
	for r.skip("[,") != 0 {
		r.skip("[")
		c := sandbox.FileChange{Path: r.string()}
		r.skip(",")
		c.Action = r.string()
		r.skip(",")
		c.Size = r.number()
		if r.skip(",]") == ',' {
			c.Escaped = r.number() == 1
			r.skip("]")
		}
		out = append(out, c)
		if r.text == "]" {
			break
		}
	}
	return out, r.err
}

func parseMounts(text string) ([]sandbox.Mount, error) {
	if text == noMounts {
		return nil, nil
	}
	var out []sandbox.Mount
	r := reader{text: text}
	for r.skip("[,") != 0 {
		r.skip("[")
		var m sandbox.Mount
		for _, to := range []*string{(*string)(&m.Volume), &m.Name, &m.Path, &m.Sub} {
			*to = r.string()
			r.skip(",")
		}
		m.ReadOnly = r.number() == 1
		r.skip("]")
		out = append(out, m)
		if r.text == "]" {
			break
		}
	}
	return out, r.err
}

func parseList(text string) ([]string, error) {
	if text == "[]" {
		return nil, nil
	}
	var out []string
	r := reader{text: text}
	for r.skip("[,") != 0 {
		out = append(out, r.string())
		if r.text == "]" {
			break
		}
	}
	return out, r.err
}

func parseSkillFiles(text string) ([]skill.FileInfo, error) {
	if text == "[]" {
		return nil, nil
	}
	var out []skill.FileInfo
	r := reader{text: text}
	for r.skip("[,") != 0 {
		r.skip("[")
		f := skill.FileInfo{Path: r.string()}
		r.skip(",")
		f.Size = r.number()
		r.skip(",")
		f.Exec = r.number() == 1
		r.skip("]")
		out = append(out, f)
		if r.text == "]" {
			break
		}
	}
	return out, r.err
}

func parseSkills(text string) ([]sandbox.Skill, error) {
	if text == noSkills {
		return nil, nil
	}
	var out []sandbox.Skill
	r := reader{text: text}
	for r.skip("[,") != 0 {
		r.skip("[")
		var s sandbox.Skill
		for _, to := range []*string{&s.ID, &s.Name, &s.Digest} {
			*to = r.string()
			r.skip(",")
		}
		s.InstalledAt = fromMicros(r.number())
		r.skip("]")
		out = append(out, s)
		if r.text == "]" {
			break
		}
	}
	return out, r.err
}
