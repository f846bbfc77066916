// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/internal/spelling"
	"sandpit.dev/sandbox"
)

// args are the arguments of one call. They are read leniently: models write a
// number as text, null for "leave it out", and names of other tools' arguments.
// Every problem is kept, so that one answer names them all.
type args struct {
	params []param
	values map[string]json.RawMessage // by the param's own name
	bad    []fault.Field
	notes  []string // for the answer
}

// maxShown bounds what a message repeats of a value.
const maxShown = 80

func newArgs(params []param, raw json.RawMessage) *args {
	a := &args{params: params, values: make(map[string]json.RawMessage)}
	var sent map[string]json.RawMessage
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &sent); err != nil { // null is no arguments
			a.add("arguments", "are no JSON object (they begin with %s)", shown(raw))
			return a
		}
	}
	spelt := make(map[string]string)
	for _, name := range sortedKeys(sent) {
		v := sent[name]
		if string(bytes.TrimSpace(v)) == "null" {
			continue
		}
		p := a.find(name)
		if p == nil {
			a.unknown(name)
			continue
		}
		if before, ok := spelt[p.name]; ok {
			if !bytes.Equal(a.values[p.name], v) {
				a.add(p.name, "is given twice and differently, as %s and as %s", before, name)
			}
			continue
		}
		spelt[p.name] = name
		a.values[p.name] = v
	}
	for _, p := range params {
		if p.required && a.values[p.name] == nil {
			a.add(p.name, "is missing: %s", p.about)
		}
	}
	return a
}

func sortedKeys(m map[string]json.RawMessage) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// find gives the param of this name or alias, nil if there is none.
func (a *args) find(name string) *param {
	for i := range a.params {
		if p := &a.params[i]; p.name == name || slices.Contains(p.aliases, name) {
			return p
		}
	}
	return nil
}

// unknown judges a name that no param has. One that is nearly a param's is a
// slip, and what it meant would silently not happen: it is refused. All others
// are what models add of their own, and are told of.
func (a *args) unknown(name string) {
	for _, p := range a.params {
		if spelling.Distance(name, p.name) <= min(2, (len(p.name)+1)/4) { // short names are near to anything
			a.add(sandbox.Clip(name, maxShown), "is no argument of this tool; did you mean %s?", p.name)
			return
		}
	}
	if len(a.notes) < 5 {
		a.notes = append(a.notes, fmt.Sprintf("the argument %q is not known here and was ignored", sandbox.Clip(name, maxShown)))
	}
}

func (a *args) add(name, format string, v ...any) {
	a.bad = append(a.bad, fault.Field{Name: name, Message: fmt.Sprintf(format, v...)})
}

// err is nil, or Invalid with all problems.
func (a *args) err() error {
	if len(a.bad) == 0 {
		return nil
	}
	return &fault.Error{Code: fault.Invalid, Message: "arguments are wrong", Fields: a.bad}
}

func (a *args) has(name string) bool { return a.values[name] != nil }

// text gives a string, "" where there is none. Numbers and truth values are
// taken as they are written.
func (a *args) text(name string) string {
	v, ok := a.values[name]
	if !ok {
		return ""
	}
	s, ok := asText(v)
	if !ok {
		a.add(name, "is %s and not a string", shown(v))
		return ""
	}
	if p := a.find(name); p != nil && p.enum != nil && !slices.Contains(p.enum, s) {
		a.add(name, "%q is not one of %s", sandbox.Clip(s, maxShown), strings.Join(p.enum, ", "))
	}
	return s
}

func asText(v json.RawMessage) (string, bool) {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s, true
	}
	v = bytes.TrimSpace(v)
	if len(v) > 0 && v[0] != '{' && v[0] != '[' {
		return string(v), true
	}
	return "", false
}

// number gives a number within the param's bounds, def where there is none.
func (a *args) number(name string, def float64) float64 {
	v, ok := a.values[name]
	if !ok {
		return def
	}
	s, _ := asText(v)
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(n) {
		a.add(name, "is %s and not a number", shown(v))
		return def
	}
	p := a.find(name)
	if p.kind == integer && n != math.Trunc(n) {
		a.add(name, "is %s and not a whole number", shown(v))
		return def
	}
	if p.max > p.min && (n < p.min || n > p.max) {
		a.add(name, "%s is outside %s to %s", decimal(n), decimal(p.min), decimal(p.max))
		return def
	}
	return n
}

// bool gives a truth value, def where there is none.
func (a *args) bool(name string, def bool) bool {
	v, ok := a.values[name]
	if !ok {
		return def
	}
	s, _ := asText(v)
	b, err := strconv.ParseBool(strings.TrimSpace(s))
	if err != nil {
		a.add(name, "is %s and neither true nor false", shown(v))
		return def
	}
	return b
}

// env gives variables: an object of strings, or a list of NAME=VALUE.
func (a *args) env(name string) map[string]string {
	v, ok := a.values[name]
	if !ok {
		return nil
	}
	env, problem := variables(v)
	if problem != "" {
		a.add(name, "%s", problem)
	}
	return env
}

// variables reads both ways of writing them; problem says what is wrong.
func variables(v json.RawMessage) (env map[string]string, problem string) {
	var object map[string]json.RawMessage
	if json.Unmarshal(v, &object) == nil {
		env = make(map[string]string, len(object))
		for n, value := range object {
			s, ok := asText(value)
			if !ok {
				return nil, fmt.Sprintf("the value of %q is not a string", sandbox.Clip(n, maxShown))
			}
			env[n] = s
		}
		return env, ""
	}
	var list []string
	if json.Unmarshal(v, &list) != nil {
		return nil, `is neither an object of strings ({"NAME": "value"}) nor a list of NAME=VALUE`
	}
	env = make(map[string]string, len(list))
	for i, entry := range list {
		n, value, ok := strings.Cut(entry, "=")
		if !ok {
			// The entry itself may be a secret.
			return nil, fmt.Sprintf("entry %d is not of the form NAME=VALUE", i)
		}
		env[n] = value
	}
	return env, ""
}

func shown(v json.RawMessage) string { return sandbox.Clip(string(v), maxShown) }
