// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"regexp"
	"time"

	"sandpit.dev/settings"
)

// redacted stands in place of what is secret.
const redacted = "[redacted]"

// steps is what is known of where the keys of a configuration have their values from.
type steps struct {
	last    map[string]any // by key, at the last step
	sources map[string]settings.Source
}

// take notes that what differs from the step before comes from a source.
func (s *steps) take(c *Config, from settings.Source) {
	now := make(map[string]any)
	c.eachKey(func(key string, v reflect.Value, _ bool) { now[key] = plain(v, false, nil) })
	sources := maps.Clone(s.sources)
	if sources == nil {
		sources = make(map[string]settings.Source)
	}
	for key, v := range now {
		if s.last != nil && !reflect.DeepEqual(s.last[key], v) {
			sources[key] = from
		}
	}
	s.last, s.sources = now, sources
}

// startValues are the keys that settings begin with which can be changed without a restart.
func startValues() map[string]string {
	return map[string]string{
		"defaults.idle_timeout": "idle_timeout_seconds", "defaults.retention": "retention_seconds", "defaults.command_timeout": "command_timeout_seconds",
		"allow_root": "allow_root", "allowed_variables": "allowed_variables", "pools": "pools",
		"images.default": "default_image", "images.allowed": "allowed_images", "images.exact": "exact_images",
		"network.max_mode": "max_network", "network.default": "default_network", "preview.max": "max_previews",
		"log.level": "log_level", "log.requests": "log_requests", "log.mcp": "log_mcp", "log.tools": "log_tools",
	}
}

// configured returns what c has at each key, and where from, without what is secret.
func (c *Config) configured() (all []settings.Configured) {
	names := startValues()
	c.eachKey(func(key string, v reflect.Value, secret bool) {
		from := c.steps.sources[key]
		if from == "" {
			from = settings.Default
		}
		one := settings.Configured{Key: key, Value: plain(v, secret, hide), Secret: secret || holdsSecret(v.Type()), Source: from, Setting: names[key]}
		all = append(all, one)
	})
	return all
}

// eachKey calls f with each key that is no section, in the order of the fields. secret: its field is marked so.
func (c *Config) eachKey(f func(key string, v reflect.Value, secret bool)) {
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		eachField(v, func(key string, v reflect.Value, secret bool) {
			if v.Kind() == reflect.Struct {
				walk(v, below(path, key))
				return
			}
			f(below(path, key), v, secret)
		})
	}
	walk(reflect.ValueOf(c).Elem(), "")
}

// eachField calls f with each field of a section that is a key of it, also those of sections that are written into it.
func eachField(v reflect.Value, f func(key string, v reflect.Value, secret bool)) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch name, inline := keyOf(field); {
		case inline:
			eachField(v.Field(i), f)
		case name != "":
			f(name, v.Field(i), field.Tag.Get("secret") == "true")
		}
	}
}

// holdsSecret reports whether a type has a field that is marked as secret.
func holdsSecret(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer:
		return holdsSecret(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() && (f.Tag.Get("secret") == "true" || holdsSecret(f.Type)) {
				return true
			}
		}
	}
	return false
}

// userinfo is the name and the password in an address.
var userinfo = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*://)[^/?#]*@`)

// hide returns a text that may be told: all of a secret's is hidden, of another one what stands before the host of an address.
func hide(text string, secret bool) string {
	if secret && text != "" {
		return redacted
	}
	return userinfo.ReplaceAllString(text, "${1}"+redacted+"@")
}

// plain returns a value as JSON has it, which shares nothing with it. told, if not nil, is what becomes of each text; the keys of
// a map are told as they are.
func plain(v reflect.Value, secret bool, told func(text string, secret bool) string) any {
	switch of := v.Interface().(type) {
	case time.Duration:
		return of.String()
	case slog.Level:
		return levelName(of)
	}
	switch v.Kind() {
	case reflect.String:
		if told != nil {
			return told(v.String(), secret)
		}
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int64:
		return v.Int()
	case reflect.Float64:
		return v.Float()
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return plain(v.Elem(), secret, told)
	case reflect.Slice:
		list := make([]any, 0, v.Len())
		for i := range v.Len() {
			list = append(list, plain(v.Index(i), secret, told))
		}
		return list
	case reflect.Map:
		all := make(map[string]any, v.Len())
		for k, one := range v.Seq2() {
			all[k.String()] = plain(one, secret, told)
		}
		return all
	case reflect.Struct:
		all := make(map[string]any)
		eachField(v, func(key string, one reflect.Value, marked bool) { all[key] = plain(one, secret || marked, told) })
		return all
	}
	panic(fmt.Sprintf("daemon: the configuration has a %s, which is not known here", v.Type()))
}
