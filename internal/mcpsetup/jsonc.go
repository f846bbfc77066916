// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpsetup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// node is a value in JSON text, and where it stands.
type node struct {
	kind     byte // '{', '[' or 's' for all others
	from, to int
	members  []located // of an object
	elements []*node   // of an array
	comma    int       // behind the last of them, where the text has one; else 0
}

// located is a member of an object.
type located struct {
	key   string
	from  int // of the key
	value *node
}

// member returns the member with a key, or nil. It is an error if there are two, because
// programs do not agree on which counts.
func (n *node) member(key string) (found *located, err error) {
	for i := range n.members {
		if n.members[i].key != key {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("the key %q appears twice", key)
		}
		found = &n.members[i]
	}
	return found, nil
}

// maxNesting bounds the depth of a file.
const maxNesting = 200

// parser reads JSON with comments, and with commas before the end of an object or an array.
// It is our own because tailscale/hujson has no bound on nesting, quotes values in its errors,
// and refuses a last comment without a line end.
type parser struct {
	src   []byte
	at    int
	depth int
	loose bool // it met what plain JSON does not have
}

// parseJSON returns the value of src, or nil if it holds none. loose reports whether it has
// comments or trailing commas, which plain JSON does not.
func parseJSON(src []byte) (root *node, loose bool, err error) {
	p := &parser{src: src}
	if !utf8.Valid(src) {
		return nil, false, fmt.Errorf("it is not valid UTF-8")
	}
	p.at = len(src) - len(bytes.TrimPrefix(src, []byte("\ufeff")))
	if err := p.blank(); err != nil {
		return nil, false, err
	}
	if p.at == len(src) {
		return nil, p.loose, nil
	}
	if root, err = p.value(); err == nil {
		err = p.blank()
	}
	if err == nil && p.at < len(src) {
		err = p.bad("the file goes on after its value")
	}
	return root, p.loose, err
}

func (p *parser) bad(what string) error {
	return fmt.Errorf("line %d: %s", 1+bytes.Count(p.src[:min(p.at, len(p.src))], []byte("\n")), what)
}

// blank skips white space and comments.
func (p *parser) blank() error {
	for p.at < len(p.src) {
		rest := p.src[p.at:]
		switch {
		case bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0:
			p.at++
		case bytes.HasPrefix(rest, []byte("//")):
			p.loose = true
			n := bytes.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			p.at += n
		case bytes.HasPrefix(rest, []byte("/*")):
			p.loose = true
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 {
				return p.bad("a comment does not end")
			}
			p.at += n + 4
		default:
			return nil
		}
	}
	return nil
}

// next skips white space and comments, and returns the byte that follows, or 0 at the end.
func (p *parser) next() (byte, error) {
	if err := p.blank(); err != nil || p.at == len(p.src) {
		return 0, err
	}
	return p.src[p.at], nil
}

func (p *parser) value() (*node, error) {
	c, err := p.next()
	if err != nil {
		return nil, err
	}
	n := &node{kind: c, from: p.at}
	switch c {
	case '{', '[':
		if p.depth++; p.depth > maxNesting {
			return nil, p.bad("it is nested too deeply")
		}
		p.at++
		err = p.items(n)
		p.depth--
	case '"':
		n.kind = 's'
		_, err = p.text()
	default:
		n.kind = 's'
		end := p.at
		for end < len(p.src) && bytes.IndexByte([]byte(" \t\r\n,]}/:"), p.src[end]) < 0 {
			end++
		}
		if !json.Valid(p.src[p.at:end]) {
			return nil, p.bad("not a valid value")
		}
		p.at = end
	}
	n.to = p.at
	return n, err
}

// items reads the members of an object or the elements of an array, and its closing bracket.
func (p *parser) items(n *node) error {
	end := n.kind + 2 // the brace or bracket that belongs to it
	for first := true; ; first = false {
		c, err := p.next()
		if err != nil {
			return err
		}
		if c == end && (first || n.comma > 0) {
			p.loose = p.loose || n.comma > 0
			p.at++
			return nil
		}
		n.comma = 0
		if err := p.item(n); err != nil {
			return err
		}
		if c, err = p.next(); err != nil {
			return err
		}
		p.at++
		switch c {
		case end:
			return nil
		case ',':
			n.comma = p.at
		default:
			p.at--
			return p.bad("a comma or a closing bracket is missing")
		}
	}
}

func (p *parser) item(n *node) error {
	if n.kind == '[' {
		v, err := p.value()
		n.elements = append(n.elements, v)
		return err
	}
	m := located{from: p.at}
	var err error
	if m.key, err = p.text(); err != nil {
		return err
	}
	c, err := p.next()
	if err != nil {
		return err
	}
	if c != ':' {
		return p.bad("a colon is missing")
	}
	p.at++
	if m.value, err = p.value(); err != nil {
		return err
	}
	n.members = append(n.members, m)
	return nil
}

// text reads a string.
func (p *parser) text() (s string, err error) {
	if p.at == len(p.src) || p.src[p.at] != '"' {
		return "", p.bad("a string is missing")
	}
	end := p.at + 1
	for end < len(p.src) && p.src[end] != '"' {
		if p.src[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(p.src) || json.Unmarshal(p.src[p.at:end+1], &s) != nil {
		return "", p.bad("not a valid string")
	}
	p.at = end + 1
	return s, nil
}

// plain returns the value as encoding/json reads it, for comparison.
func (n *node) plain(src []byte) any {
	switch n.kind {
	case '{':
		m := make(map[string]any, len(n.members))
		for _, x := range n.members {
			m[x.key] = x.value.plain(src)
		}
		return m
	case '[':
		all := make([]any, 0, len(n.elements))
		for _, x := range n.elements {
			all = append(all, x.plain(src))
		}
		return all
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(src[n.from:n.to]))
	d.UseNumber()
	_ = d.Decode(&v) // it was read before
	return v
}
