// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"sandpit.dev/internal/spelling"
	"sandpit.dev/sandbox"
)

// maxConfigMistakes is how many mistakes of a file are told at once.
const maxConfigMistakes = 5

// configMistakes returns what is wrong with the keys and values of a configuration file, each with
// its line.
func configMistakes(doc *yaml.Node) []string {
	w := &keyWalk{}
	for _, n := range doc.Content {
		w.walk(n, reflect.TypeFor[Config](), "")
	}
	if more := len(w.found) - maxConfigMistakes; more > 0 {
		return append(w.found[:maxConfigMistakes], fmt.Sprintf("and %d more", more))
	}
	return w.found
}

type keyWalk struct {
	found []string
	under []*yaml.Node // the aliases that are being followed: one may name what it is in
}

func (w *keyWalk) say(n *yaml.Node, format string, args ...any) {
	w.found = append(w.found, fmt.Sprintf("line %d: ", n.Line)+fmt.Sprintf(format, args...))
}

// walk compares a node with the type that it is for, which stands at path.
func (w *keyWalk) walk(n *yaml.Node, t reflect.Type, path string) {
	if n.Kind == yaml.AliasNode {
		if slices.Contains(w.under, n.Alias) {
			return // the decoder says so
		}
		w.under = append(w.under, n.Alias)
		w.walk(n.Alias, t, path)
		w.under = w.under[:len(w.under)-1]
		return
	}
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
	case t.Kind() == reflect.Struct && n.Kind == yaml.MappingNode:
		keys := keysOf(t)
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, value := n.Content[i], n.Content[i+1]
			if name.Tag == "!!merge" {
				w.merge(value, t, path)
				continue
			}
			at := slices.IndexFunc(keys, func(k configKey) bool { return k.name == name.Value })
			if at < 0 {
				w.unknown(name, keys, path)
				continue
			}
			w.walk(value, keys[at].is, below(path, name.Value))
		}
	case t.Kind() == reflect.Map && n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			w.walk(n.Content[i+1], t.Elem(), below(path, sandbox.Clip(n.Content[i].Value, 40)))
		}
	case t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		for _, one := range n.Content {
			w.walk(one, t.Elem(), path)
		}
	case n.Decode(reflect.New(t).Interface()) != nil:
		is := "a list"
		switch n.Kind {
		case yaml.ScalarNode:
			is = fmt.Sprintf("%q", sandbox.Clip(n.Value, 60))
		case yaml.MappingNode:
			is = "a section"
		}
		if path == "" {
			path = "the file"
		}
		w.say(n, "%s is %s, and not %s", path, is, kindOf(t))
	}
}

// merge compares what is merged into a section: a section, or several.
func (w *keyWalk) merge(n *yaml.Node, t reflect.Type, path string) {
	if n.Kind != yaml.SequenceNode {
		w.walk(n, t, path)
		return
	}
	for _, one := range n.Content {
		w.walk(one, t, path)
	}
}

// unknown says of a key which one was meant: one of this section that begins so, the one of that name in
// another, or the nearest in this one, whose keys are listed where there is none.
func (w *keyWalk) unknown(key *yaml.Node, keys []configKey, path string) {
	name := sandbox.Clip(key.Value, 60)
	in, names := "", make([]string, len(keys))
	if path != "" {
		in = " in " + path
	}
	for i, k := range keys {
		names[i] = k.name
	}
	var meant string
	places, near := placesOf(key.Value, path), spelling.Nearest(key.Value, names)
	if near != "" && (len(places) == 0 || strings.HasPrefix(near, key.Value)) {
		meant = "did you mean " + near + "?"
	} else if len(places) > 0 {
		meant = "it belongs in " + orText(places)
	} else {
		slices.Sort(names)
		meant = "the keys there are " + strings.Join(names, ", ")
	}
	w.say(key, "there is no key %q%s; %s", name, in, meant)
}

// placesOf returns the sections that have a key of that name, those in path alone where there are
// some. The key may have its section before it, as in network.max_mode.
func placesOf(key, path string) []string {
	var all, inner []string
	var look func(t reflect.Type, at string)
	look = func(t reflect.Type, at string) {
		for _, k := range keysOf(t) {
			full := below(at, k.name)
			switch {
			case k.name == key && at != path:
				place := at
				if place == "" {
					place = "the top of the file"
				}
				all = append(all, place)
				if at != "" && strings.HasPrefix(at, below(path, "")) {
					inner = append(inner, place)
				}
			case full == key:
				all = append(all, at+", as "+k.name)
			}
			is := k.is
			for is.Kind() == reflect.Slice || is.Kind() == reflect.Map {
				is = is.Elem()
			}
			if is.Kind() == reflect.Struct {
				look(is, full)
			}
		}
	}
	look(reflect.TypeFor[Config](), "")
	if path != "" && len(inner) > 0 {
		return inner
	}
	return all
}

// configKey is a key of a section, and the type of its value.
type configKey struct {
	name string
	is   reflect.Type
}

// keysOf returns the keys of a section in the order of its fields.
func keysOf(t reflect.Type) (keys []configKey) {
	for f := range t.Fields() {
		switch name, inline := keyOf(f); {
		case inline:
			keys = append(keys, keysOf(f.Type)...)
		case name != "":
			keys = append(keys, configKey{name, f.Type})
		}
	}
	return keys
}

// keyOf returns a field's key, or "" if it has none, and reports whether the keys of its own are those of the section that it is in.
func keyOf(f reflect.StructField) (name string, inline bool) {
	name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	if name == "-" {
		name = ""
	}
	return name, options == "inline"
}

// kindOf says what a value of a type is.
func kindOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "a length of time, such as 90s, 15m or 2h"
	case reflect.TypeFor[slog.Level]():
		return "debug, info, warn or error"
	}
	switch t.Kind() {
	case reflect.Struct:
		return "a section with the keys " + strings.Join(func() (names []string) {
			for _, k := range keysOf(t) {
				names = append(names, k.name)
			}
			return names
		}(), ", ")
	case reflect.Map:
		return "a section"
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "a text"
}

func below(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func orText(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}
