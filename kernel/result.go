// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of what a cell gives back, whatever its kernel says.
const (
	MaxResults     = 100      // results of a cell; more are counted
	MaxResultBytes = 10 << 20 // of all of them together, as they came
	MaxForms       = 20       // forms of one result

	maxMime      = 100
	maxOmitted   = 20
	maxName      = 200
	maxValue     = 64 << 10
	maxTraceback = 512 << 10
	maxLines     = 20_000
)

// Result is a value that a cell has shown, in one or more forms. All texts are valid
// UTF-8. HTML, SVG, Markdown and JavaScript are the sandbox's and as dangerous as any
// page of a stranger.
type Result struct {
	Main bool // the value of the cell's last expression; else of display, or a figure

	Text       string
	HTML       string
	Markdown   string
	SVG        string
	LaTeX      string
	JavaScript string
	JSON       json.RawMessage
	PNG        []byte // begins as a PNG does
	JPEG       []byte // begins as a JPEG does
	PDF        []byte // begins as a PDF does

	// Chart is what a figure shows: an object whose type is line, scatter, bar, pie, box_and_whisker, composite
	// or unknown.
	Chart json.RawMessage
	// Data is the columns of a data frame: lists of values by their names.
	Data    json.RawMessage
	DataCut bool // Data is only the first rows or columns, or some texts in it are cut

	At time.Time // when the kernel said it; zero: not known

	// More are forms of other mime types: JSON for those that end in json, else a JSON string.
	More map[string]json.RawMessage

	TextCut bool     // Text is only the first part
	Omitted []string // forms that were too large, or not what their type says
}

// Size returns about how many bytes of memory a result holds.
func (r *Result) Size() int64 {
	n := 512 + len(r.Text) + len(r.HTML) + len(r.Markdown) + len(r.SVG) + len(r.LaTeX) + len(r.JavaScript) +
		len(r.JSON) + len(r.PNG) + len(r.JPEG) + len(r.PDF) + len(r.Chart) + len(r.Data)
	for name, form := range r.More {
		n += len(name) + len(form)
	}
	return int64(n)
}

// Error is what ended a cell: an exception.
type Error struct {
	Name      string   // "ValueError"
	Value     string   // its text
	Traceback []string // lines; of a SystemExit none
}

// The magics of binary forms.
var magics = map[string]string{
	"image/png":       "\x89PNG\r\n\x1a\n",
	"image/jpeg":      "\xff\xd8\xff",
	"application/pdf": "%PDF-",
}

var mimeType = regexp.MustCompile(`^[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*$`)

// result makes a Result of what a kernel says, and returns its size.
func (m *message) result(room int) (Result, int) {
	r := Result{Main: m.Main, TextCut: m.Cut}
	omit := func(name string) {
		if name = clean(name, maxMime); len(r.Omitted) < maxOmitted && !slices.Contains(r.Omitted, name) {
			r.Omitted = append(r.Omitted, name)
		}
	}
	for _, name := range m.Omitted[:min(len(m.Omitted), maxOmitted)] {
		omit(name)
	}
	names := make([]string, 0, len(m.Data))
	for name := range m.Data {
		names = append(names, name)
	}
	slices.Sort(names)
	if i := slices.Index(names, "text/plain"); i > 0 { // whatever does not fit, this should
		names = slices.Insert(slices.Delete(names, i, i+1), 0, "text/plain")
	}
	used, forms := 0, 0
	for _, name := range names {
		value := m.Data[name]
		if forms == MaxForms || used+len(value) > room || len(name) > maxMime || !r.put(strings.ToLower(name), value) {
			omit(name)
			continue
		}
		used += len(value)
		forms++
	}
	return r, used
}

// put sets one form. It is false for what is not what its type says.
func (r *Result) put(name string, value json.RawMessage) bool {
	if !mimeType.MatchString(name) || string(value) == "null" && name != "application/json" {
		return false
	}
	switch name {
	case "application/json":
		r.JSON = compact(value)
		return r.JSON != nil
	case chartType:
		return r.putChart(value)
	case dataType:
		return r.putData(value)
	}
	var text string
	isText := json.Unmarshal(value, &text) == nil
	if !isText {
		if !strings.HasSuffix(name, "json") {
			return false
		}
		if value = compact(value); value == nil {
			return false
		}
	}
	switch name {
	case "text/plain":
		r.Text = text
	case "text/html":
		r.HTML = text
	case "text/markdown":
		r.Markdown = text
	case "text/latex":
		r.LaTeX = text
	case "image/svg+xml":
		r.SVG = text
	case "application/javascript":
		r.JavaScript = text
	case "image/png":
		return binary(&r.PNG, name, text)
	case "image/jpeg":
		return binary(&r.JPEG, name, text)
	case "application/pdf":
		return binary(&r.PDF, name, text)
	default:
		if isText { // said anew, so that it is valid UTF-8
			value, _ = json.Marshal(text)
		}
		if r.More == nil {
			r.More = map[string]json.RawMessage{}
		}
		r.More[name] = slices.Clone(value)
	}
	return true
}

// compact is value as valid JSON without blanks, or nil.
func compact(value json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil || !utf8.Valid(b.Bytes()) {
		return nil
	}
	return b.Bytes()
}

func binary(to *[]byte, name, text string) bool {
	b, err := base64.StdEncoding.DecodeString(text) // blanks of lines are fine
	if err != nil || !bytes.HasPrefix(b, []byte(magics[name])) {
		return false
	}
	*to = b
	return true
}

// failure makes an Error of what a kernel says.
func (m *message) failure() *Error {
	e := &Error{Name: clean(m.Name, maxName), Value: clip(m.Value, maxValue)}
	if e.Name == "" {
		e.Name = "Error"
	}
	left := maxTraceback
	for _, line := range m.Traceback[:min(len(m.Traceback), maxLines)] {
		if left -= len(line) + 1; left < 0 {
			break
		}
		e.Traceback = append(e.Traceback, line)
	}
	return e
}

// clip is the first n bytes of s at most, whole characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// clean is s without what is not printable, of n bytes at most.
func clean(s string, n int) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, clip(s, n))
}
