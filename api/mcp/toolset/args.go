// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

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

// Args are the arguments of one call. They are read leniently: models write a
// number as text, null for "leave it out", and names of other tools' arguments.
// Every problem is kept, so that one answer names them all.
type Args struct {
	params []Param
	Values map[string]json.RawMessage // by the param's own name
	Bad    []fault.Field
	Notes  []string // for the answer
}

// MaxShown bounds what a message repeats of a value.
const MaxShown = 80

// NewArgs reads the arguments of a call; problems are kept until Err.
func NewArgs(params []Param, raw json.RawMessage) *Args {
	a := &Args{params: params, Values: make(map[string]json.RawMessage)}
	var sent map[string]json.RawMessage
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &sent); err != nil { // null is no arguments
			a.Add("arguments", "are not a valid JSON object: they begin with %s", Shown(raw))
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
		if before, ok := spelt[p.Name]; ok {
			if !bytes.Equal(a.Values[p.Name], v) {
				a.Add(p.Name, "is given twice and differently, as %s and as %s", before, name)
			}
			continue
		}
		spelt[p.Name] = name
		a.Values[p.Name] = v
	}
	for _, p := range params {
		if p.Required && a.Values[p.Name] == nil {
			a.Add(p.Name, "is missing: %s", p.About)
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

// find returns the param of this name or alias, nil if there is none.
func (a *Args) find(name string) *Param {
	for i := range a.params {
		if p := &a.params[i]; p.Name == name || slices.Contains(p.Aliases, name) {
			return p
		}
	}
	return nil
}

// unknown judges a name that no param has. One that is nearly a param's is a
// slip, and what it meant would silently not happen: it is refused. All others
// are what models add of their own, and are told of.
func (a *Args) unknown(name string) {
	for _, p := range a.params {
		if spelling.Distance(name, p.Name) <= min(2, (len(p.Name)+1)/4) { // short names are near to anything
			a.Add(sandbox.Clip(name, MaxShown), "is not an argument of this tool; did you mean %s?", p.Name)
			return
		}
	}
	if len(a.Notes) < 5 {
		a.Notes = append(a.Notes, fmt.Sprintf("the argument %q is not known here and was ignored", sandbox.Clip(name, MaxShown)))
	}
}

// Add notes a problem with an argument.
func (a *Args) Add(name, format string, v ...any) {
	a.Bad = append(a.Bad, fault.Field{Name: name, Message: fmt.Sprintf(format, v...)})
}

// Err is nil, or Invalid with all problems.
func (a *Args) Err() error {
	if len(a.Bad) == 0 {
		return nil
	}
	return &fault.Error{Code: fault.Invalid, Message: "arguments are wrong", Fields: a.Bad}
}

// Has reports whether an argument was given.
func (a *Args) Has(name string) bool { return a.Values[name] != nil }

// Text returns a string, "" where there is none. Numbers and truth values are
// taken as they are written.
func (a *Args) Text(name string) string {
	if !a.Has(name) {
		return ""
	}
	return a.known(name, a.wholeText(name))
}

// wholeText is Text for what is not one of a few words.
func (a *Args) wholeText(name string) string {
	v, ok := a.Values[name]
	if !ok {
		return ""
	}
	s, ok := asText(v)
	if !ok {
		a.Add(name, "is %s and not a string", Shown(v))
		return ""
	}
	return s
}

// known returns s. It notes a problem if s is not one of the parameter's words.
func (a *Args) known(name, s string) string {
	if p := a.find(name); p != nil && p.Enum != nil && !slices.Contains(p.Enum, s) {
		a.Add(name, "%q is not one of %s", sandbox.Clip(s, MaxShown), strings.Join(p.Enum, ", "))
	}
	return s
}

// List returns texts: a list of them, or one text with commas between. Blanks around them and empty
// ones are left out.
func (a *Args) List(name string) []string {
	var parts []json.RawMessage
	if json.Unmarshal(a.Values[name], &parts) != nil {
		var out []string
		for s := range strings.SplitSeq(a.wholeText(name), ",") {
			if s = strings.TrimSpace(s); s != "" {
				out = append(out, a.known(name, s))
			}
		}
		return out
	}
	out := make([]string, 0, len(parts))
	for i, v := range parts {
		s, ok := asText(v)
		if !ok || string(bytes.TrimSpace(v)) == "null" {
			a.Add(fmt.Sprintf("%s[%d]", name, i), "is %s and not a string", Shown(v))
			continue
		}
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, a.known(name, s))
		}
	}
	return out
}

// Command returns a command: shell text, or a list of a program and its arguments.
func (a *Args) Command(name string) (shell string, argv []string) {
	if json.Unmarshal(a.Values[name], &argv) == nil && argv != nil {
		return "", argv
	}
	return a.Text(name), nil
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

// Number returns a number within the param's bounds, def where there is none.
func (a *Args) Number(name string, def float64) float64 {
	v, ok := a.Values[name]
	if !ok {
		return def
	}
	s, _ := asText(v)
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(n) {
		a.Add(name, "is %s and not a number", Shown(v))
		return def
	}
	p := a.find(name)
	if p.Kind == Integer && n != math.Trunc(n) {
		a.Add(name, "is %s and not a whole number", Shown(v))
		return def
	}
	if p.Max > p.Min && (n < p.Min || n > p.Max) {
		a.Add(name, "%s is outside %s to %s", Decimal(n), Decimal(p.Min), Decimal(p.Max))
		return def
	}
	return n
}

// Bool returns a truth value, def where there is none.
func (a *Args) Bool(name string, def bool) bool {
	v, ok := a.Values[name]
	if !ok {
		return def
	}
	s, _ := asText(v)
	b, err := strconv.ParseBool(strings.TrimSpace(s))
	if err != nil {
		a.Add(name, "is %s and neither true nor false", Shown(v))
		return def
	}
	return b
}

// Env returns variables: an object of strings, or a list of NAME=VALUE.
func (a *Args) Env(name string) map[string]string {
	v, ok := a.Values[name]
	if !ok {
		return nil
	}
	env, problem := variables(v)
	if problem != "" {
		a.Add(name, "%s", problem)
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
				return nil, fmt.Sprintf("the value of %q is not a string", sandbox.Clip(n, MaxShown))
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

// Shown is the beginning of a value, for messages.
func Shown(v json.RawMessage) string { return sandbox.Clip(string(v), MaxShown) }
