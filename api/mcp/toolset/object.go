// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"bytes"
	"encoding/json"
	"path"
	"strconv"
	"strings"
)

// Object is a nested object that is being read.
type Object struct {
	Args   *Args
	At     string
	Values json.RawMessage
	m      map[string]json.RawMessage
}

// Fields returns the object with its fields read, each to be taken out once.
func (o Object) Fields() *Object {
	o.m = make(map[string]json.RawMessage)
	if o.Values != nil && json.Unmarshal(o.Values, &o.m) != nil {
		o.Args.Add(o.At, "is %s and not an object", Shown(o.Values))
	}
	return &o
}

// get takes a value out; null is none.
func (o *Object) get(name string) (json.RawMessage, bool) {
	v, ok := o.m[name]
	delete(o.m, name)
	return v, ok && string(bytes.TrimSpace(v)) != "null"
}

func (o *Object) add(name, format string, v ...any) { o.Args.Add(o.At+"."+name, format, v...) }

// Text returns a string, "" where there is none.
func (o *Object) Text(name string) string {
	v, ok := o.get(name)
	if !ok {
		return ""
	}
	s, ok := asText(v)
	if !ok {
		o.add(name, "is %s and not a string", Shown(v))
	}
	return s
}

// Shell reads the shell text, or the truth value that some clients send there:
// then it is "true" and no text.
func (o *Object) Shell() (s string, isText bool) {
	v, ok := o.get("shell")
	if !ok {
		return "", false
	}
	var yes bool
	if json.Unmarshal(v, &yes) == nil {
		if yes {
			return "true", false
		}
		return "", false
	}
	if json.Unmarshal(v, &s) != nil {
		o.add("shell", "is %s and not a string", Shown(v))
	}
	return s, strings.TrimSpace(s) != ""
}

// Integer reads a whole number of at least least, and at most most where that
// is not zero.
func (o *Object) Integer(name string, least, most int64) (int64, bool) {
	v, ok := o.get(name)
	if !ok {
		return 0, false
	}
	s, _ := asText(v)
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	switch {
	case err != nil:
		o.add(name, "is %s and not a whole number", Shown(v))
	case n < least:
		o.add(name, "%d is less than %d", n, least)
	case most > 0 && n > most:
		o.add(name, "%d is more than %d", n, most)
	}
	// What is longer than any duration means the longest.
	return min(n, int64(1<<31)), true
}

// Boolean returns a truth value, and whether it was given.
func (o *Object) Boolean(name string) (value, given bool) {
	v, ok := o.get(name)
	if !ok {
		return false, false
	}
	s, _ := asText(v)
	yes, err := strconv.ParseBool(strings.TrimSpace(s))
	if err != nil {
		o.add(name, "is %s and neither true nor false", Shown(v))
	}
	return yes, true
}

// Env returns variables, as Args.Env does.
func (o *Object) Env(name string) map[string]string {
	v, ok := o.get(name)
	if !ok {
		return nil
	}
	env, problem := variables(v)
	if problem != "" {
		o.add(name, "%s", problem)
	}
	return env
}

// Texts returns a list of strings.
func (o *Object) Texts(name string) []string {
	v, ok := o.get(name)
	if !ok {
		return nil
	}
	var list []string
	if json.Unmarshal(v, &list) != nil {
		o.add(name, "is %s and not a list of strings", Shown(v))
	}
	return list
}

// Cwd returns a working directory, def where there is none.
func (o *Object) Cwd(name, def string) string {
	s := o.Text(name)
	switch {
	case s == "":
		return def
	case !path.IsAbs(s):
		o.add(name, "%q is not absolute", Clip(s))
	}
	return s
}

// Rest refuses what is left: a misspelt option would silently not hold.
func (o *Object) Rest() {
	for _, n := range sortedKeys(o.m) {
		o.add(Clip(n), "is not known")
	}
}
