// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpsetup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// MaxFile bounds the files that are merged into.
const MaxFile = 16 << 20

// Snippet is what a file of the client has to hold, for people to paste.
func (c Client) Snippet(s Server) string {
	text, err := c.Merge(nil, s)
	if err != nil {
		panic("mcpsetup: " + err.Error()) // nothing of it comes from outside
	}
	return strings.TrimRight(string(text), "\n")
}

// Merge returns the client's file with the server in it, which stands under its name
// whatever was there before. All else stays as it is, comments included. Text that has it
// already is given back as it is. An error says what is wrong with the file; it names
// no value of it.
func (c Client) Merge(old []byte, s Server) ([]byte, error) {
	if err := CheckName(s.Name); err != nil {
		return nil, err
	}
	if len(old) > MaxFile {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(old), MaxFile)
	}
	before, err := c.read(old)
	if err != nil {
		return nil, err
	}
	if c.has(before, s) {
		return old, nil
	}
	merged, err := c.merge(old, before, s)
	if err != nil {
		return nil, err
	}
	after, err := c.read(merged)
	if err != nil {
		return nil, fmt.Errorf("the entry does not go into it: %w", err)
	}
	if !c.has(after, s) || !reflect.DeepEqual(c.others(before, s), c.others(after, s)) {
		return nil, errors.New("its form is not one that the entry can be put into without touching others")
	}
	return merged, nil
}

func (c Client) merge(old []byte, before map[string]any, s Server) ([]byte, error) {
	if c.format == tomlFile {
		// A table that stands in one line, or is made of dotted keys, takes no table below
		// it, though not every reader says so.
		headers := tomlHeaders(bytes.SplitAfter(old, []byte("\n")))
		if _, ok := c.entries(before)[s.Name]; ok && !begins(headers, c.key, s.Name) {
			return nil, fmt.Errorf("%s.%s is there, and is not a table of its own", c.key, s.Name)
		}
		if _, ok := before[c.key]; ok && !begins(headers, c.key) {
			return nil, fmt.Errorf("%s is there, and is not a table of its own", c.key)
		}
		return mergeTOML(old, c.key, s.Name, c.entry(s))
	}
	d, _, err := open(old)
	if err != nil {
		return nil, err
	}
	if in := c.input(s); in != nil {
		if err := d.put(in, inputsKey); err != nil {
			return nil, err
		}
	}
	if err := d.set(c.entry(s), c.key, s.Name); err != nil {
		return nil, err
	}
	return d.src, nil
}

// inputsKey has what VS Code asks for.
const inputsKey = "inputs"

// read reads a file for comparison.
func (c Client) read(src []byte) (map[string]any, error) {
	if c.format == tomlFile {
		return readTOML(src)
	}
	d, loose, err := open(src)
	if err != nil {
		return nil, err
	}
	if loose && c.format == strictJSON {
		return nil, fmt.Errorf("it has comments, or commas before an end, which %s does not read", c.Title)
	}
	return d.root.plain(d.src).(map[string]any), nil
}

// entries are those of a file that was read.
func (c Client) entries(all map[string]any) map[string]any {
	m, _ := all[c.key].(map[string]any)
	return m
}

// has reports whether a file has the server as it is to be.
func (c Client) has(all map[string]any, s Server) bool {
	if !reflect.DeepEqual(canonical(c.entries(all)[s.Name]), canonical(c.entry(s))) {
		return false
	}
	in := c.input(s)
	if in == nil {
		return true
	}
	list, _ := all[inputsKey].([]any)
	for _, e := range list {
		if reflect.DeepEqual(canonical(e), canonical(in)) {
			return true
		}
	}
	return false
}

// others is a file without the server.
func (c Client) others(all map[string]any, s Server) any {
	rest := make(map[string]any)
	for k, v := range all {
		rest[k] = v
	}
	entries := make(map[string]any)
	for k, v := range c.entries(all) {
		if k != s.Name {
			entries[k] = v
		}
	}
	if _, ok := all[c.key].(map[string]any); ok || all[c.key] == nil {
		rest[c.key] = entries
	}
	if c.input(s) != nil {
		var list []any
		inputs, _ := all[inputsKey].([]any)
		for _, e := range inputs {
			if m, ok := e.(map[string]any); !ok || m["id"] != tokenInput(s) {
				list = append(list, e)
			}
		}
		rest[inputsKey] = list
	}
	return rest
}

// canonical is a value as JSON has it, so that values of several readers compare.
func canonical(v any) any {
	var out any
	d := json.NewDecoder(bytes.NewReader(compactJSON(v)))
	d.UseNumber()
	_ = d.Decode(&out)
	return out
}
