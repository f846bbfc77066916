// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpsetup

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// document is JSON text that is being edited. Whatever is not touched stays as it is, to the
// byte: comments, order and form.
type document struct {
	src  []byte
	root *node
	unit string // of one step of indentation
	line string // its line end
}

// open reads text that holds an object. Text without a value is an empty object.
func open(src []byte) (d *document, loose bool, err error) {
	d = &document{src: src, unit: "  ", line: "\n"}
	if d.root, loose, err = parseJSON(src); err != nil {
		return nil, loose, err
	}
	if d.root == nil {
		if loose {
			return nil, loose, fmt.Errorf("it has only comments")
		}
		d.src = []byte("{}\n")
		d.root, _, _ = parseJSON(d.src)
	}
	if d.root.kind != '{' {
		return nil, loose, fmt.Errorf("it is not a JSON object")
	}
	if bytes.Contains(src, []byte("\r\n")) {
		d.line = "\r\n"
	}
	if len(d.root.members) > 0 {
		if indent, own := d.indent(d.root.members[0].from); own && indent != "" {
			d.unit = indent
		}
	}
	return d, loose, nil
}

// indent returns the white space at the beginning of the line of a place. own reports whether
// nothing else precedes the place on that line.
func (d *document) indent(at int) (indent string, own bool) {
	line := d.src[bytes.LastIndexByte(d.src[:at], '\n')+1 : at]
	blanks := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
	return string(blanks), len(blanks) == len(line)
}

// splice replaces src[from:to] by text, and parses the result.
func (d *document) splice(from, to int, text string) error {
	d.src = slices.Concat(d.src[:from], []byte(text), d.src[to:])
	var err error
	d.root, _, err = parseJSON(d.src)
	return err
}

// text returns a value as JSON, for a line that begins with indent.
func (d *document) text(v any, indent string) string {
	return strings.ReplaceAll(string(prettyJSON(v, indent, d.unit)), "\n", d.line)
}

// set sets the value at a path of keys.
func (d *document) set(value any, keys ...string) error {
	at := d.root
	for i, key := range keys {
		if at.kind != '{' {
			return fmt.Errorf("%q is not an object", keys[i-1])
		}
		m, err := at.member(key)
		if err != nil {
			return err
		}
		if m == nil {
			for _, k := range slices.Backward(keys[i+1:]) {
				value = object{{k, value}}
			}
			return d.add(at, key, value)
		}
		at = m.value
	}
	indent, _ := d.indent(at.from)
	return d.splice(at.from, at.to, d.text(value, indent))
}

// add adds a member to an object, or with key "" an element to an array, as the last.
func (d *document) add(in *node, key string, value any) error {
	outer, _ := d.indent(in.from)
	inner := outer + d.unit
	last := d.last(in)
	if last >= 0 {
		var first int
		if len(in.members) > 0 {
			first = in.members[0].from
		} else {
			first = in.elements[0].from
		}
		if indent, own := d.indent(first); own {
			inner = indent
		}
	}
	text := d.text(value, inner)
	if key != "" {
		text = string(compactJSON(key)) + ": " + text
	}
	text = d.line + inner + text
	end := in.to - 1 // its brace
	if last < 0 {
		from := len(bytes.TrimRight(d.src[:end], " \t\r\n"))
		return d.splice(from, end, text+d.line+outer)
	}
	from := last
	if in.comma > 0 {
		from, text = in.comma, text+","
	}
	// A comment behind the last one, on its line, stays with that.
	behind, closed := d.restOfLine(from, end)
	if closed {
		text += d.line + outer
	}
	if in.comma == 0 {
		return d.splice(last, behind, ","+string(d.src[last:behind])+text)
	}
	return d.splice(behind, behind, text)
}

// last returns the end of the last member or element, or -1 if there are none.
func (d *document) last(n *node) int {
	switch {
	case len(n.members) > 0:
		return n.members[len(n.members)-1].value.to
	case len(n.elements) > 0:
		return n.elements[len(n.elements)-1].to
	}
	return -1
}

// restOfLine skips white space and comments up to the end of the line. closed reports whether
// end, where the object or array closes, comes before that; white space before it is not skipped.
func (d *document) restOfLine(at, end int) (behind int, closed bool) {
	behind = at
	for at < end {
		rest := d.src[at:end]
		switch {
		case rest[0] == '\n', bytes.HasPrefix(rest, []byte("\r\n")):
			return at, false
		case bytes.HasPrefix(rest, []byte("//")):
			n := bytes.IndexByte(rest, '\n') // a line ends before the brace
			if rest[n-1] == '\r' {
				n--
			}
			return at + n, false
		case bytes.HasPrefix(rest, []byte("/*")):
			at += bytes.Index(rest[2:], []byte("*/")) + 4
			behind = at
		default:
			at++
		}
	}
	return behind, true
}

// put replaces the element with the id of value in the array under key, or adds value to it.
func (d *document) put(value object, key string) error {
	m, err := d.root.member(key)
	if err != nil {
		return err
	}
	if m == nil {
		return d.set([]any{value}, key)
	}
	if m.value.kind != '[' {
		return fmt.Errorf("%q is not a list", key)
	}
	for _, e := range m.value.elements {
		if e.kind != '{' {
			continue
		}
		id, err := e.member("id")
		if err != nil {
			return err
		}
		if id != nil && id.value.plain(d.src) == value.get("id") {
			indent, _ := d.indent(e.from)
			return d.splice(e.from, e.to, d.text(value, indent))
		}
	}
	return d.add(m.value, "", value)
}
