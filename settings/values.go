// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Values are the values of all settings.
type Values struct {
	IdleTimeout      time.Duration // zero: never
	Retention        time.Duration // zero: never
	CommandTimeout   time.Duration
	MaxSandboxes     int64 // zero: no bound
	AllowRoot        bool
	DefaultImage     string
	AllowedImages    []string
	ExactImages      bool
	AllowedVariables []string
	MaxNetwork       string
	DefaultNetwork   string
	MaxPreviews      string
	Pools            bool
	PoolList         []string
	LogLevel         string
	LogRequests      bool
	LogMCP           bool
	LogTools         bool
}

// Scope says what a setting holds for from the moment that it changes.
type Scope string

// What settings hold for.
const (
	New Scope = "new" // what is made from then on
	All Scope = "all" // all that there is
)

// definition is a setting: its name, and where its value is.
type definition struct {
	name  string
	holds Scope
	about string
	field func(*Values) any // a pointer
}

// definitions is the visible list: a setting is one line here and a field of [Values].
func definitions() []definition {
	return []definition{
		{"idle_timeout_seconds", New, "How long a sandbox may be idle before it is stopped, where its request does not say; 0: for ever.", func(v *Values) any { return &v.IdleTimeout }},
		{"retention_seconds", All, "How long stopped sandboxes are kept, also those that there are, where their requests did not say; 0: for ever.", func(v *Values) any { return &v.Retention }},
		{"command_timeout_seconds", All, "How long a command may take that names no time limit.", func(v *Values) any { return &v.CommandTimeout }},
		{"max_sandboxes", New, "How many sandboxes a project may have that is made without quotas; 0: any number.", func(v *Values) any { return &v.MaxSandboxes }},
		{"allow_root", All, "Whether commands may run as a sandbox's root.", func(v *Values) any { return &v.AllowRoot }},
		{"default_image", New, "The image of a sandbox for which none is asked; empty: the catalogue's first.", func(v *Values) any { return &v.DefaultImage }},
		{"allowed_images", New, "Names and patterns of the images that sandboxes may have; empty: all.", func(v *Values) any { return &v.AllowedImages }},
		{"exact_images", New, "Whether names of images are refused that say something else than what is inside.", func(v *Values) any { return &v.ExactImages }},
		{"allowed_variables", New, "Names and patterns of the variables that requests may set for a sandbox; empty: all.", func(v *Values) any { return &v.AllowedVariables }},
		{"max_network", All, "The widest network that a sandbox may have: off, restricted or open.", func(v *Values) any { return &v.MaxNetwork }},
		{"default_network", New, "The network of a sandbox for which none is asked: off, open, or presets, names and addresses with commas.", func(v *Values) any { return &v.DefaultNetwork }},
		{"max_previews", All, "Who may see what programs in sandboxes serve, at most: private, or public where a sandbox's owner says so.", func(v *Values) any { return &v.MaxPreviews }},
		{"pools_enabled", All, "Whether the pools keep sandboxes ready, as many as each says; false: what they have is removed.", func(v *Values) any { return &v.Pools }},
		{"pools", All, "The pools, each by words like image=python size=small min=2 max=8; those that calls made or changed by name go before.", func(v *Values) any { return &v.PoolList }},
		{"log_level", All, "The least level of what the log has: debug, info, warn or error.", func(v *Values) any { return &v.LogLevel }},
		{"log_requests", All, "Whether the log has each request over HTTP.", func(v *Values) any { return &v.LogRequests }},
		{"log_mcp", All, "Whether the log has each message of MCP clients, by its method.", func(v *Values) any { return &v.LogMCP }},
		{"log_tools", All, "Whether the log has each call of a tool, by its name, without its arguments.", func(v *Values) any { return &v.LogTools }},
	}
}

// get returns a value as JSON has it.
func (d definition) get(v *Values) any {
	switch p := d.field(v).(type) {
	case *time.Duration:
		return int64(*p / time.Second)
	case *int64:
		return *p
	case *bool:
		return *p
	case *string:
		return *p
	case *[]string:
		if *p == nil {
			return []string{}
		}
		return *p
	default:
		panic("settings: " + d.name + " has a type that is not known")
	}
}

// set reads a value from JSON.
func (d definition) set(v *Values, raw json.RawMessage) error {
	bad := func(want string) error {
		return fault.InvalidField(d.name, "%s is not %s", sandbox.Clip(string(raw), 80), want)
	}
	switch p := d.field(v).(type) {
	case *time.Duration:
		var n float64
		if err := json.Unmarshal(raw, &n); err != nil || n < 0 || n > sandbox.MaxClock.Seconds() || n != math.Trunc(n) {
			return bad("a number of seconds")
		}
		*p = time.Duration(n) * time.Second
	case *int64:
		if json.Unmarshal(raw, p) != nil || *p < 0 {
			return bad("a number of 0 or more")
		}
	case *bool:
		if json.Unmarshal(raw, p) != nil {
			return bad("true or false")
		}
	case *string:
		if json.Unmarshal(raw, p) != nil {
			return bad("a text")
		}
	case *[]string:
		var all []string
		if json.Unmarshal(raw, &all) != nil {
			return bad("a list of texts")
		}
		*p = all
	}
	return nil
}

// Source says where a value comes from.
type Source string

// Where values come from; the later goes before the earlier.
const (
	Default     Source = "default"
	File        Source = "file"
	Environment Source = "environment"
	Flag        Source = "flag"
	Set         Source = "set" // by a call
)

// Base is what holds where no call has set anything, with the source of what is no default, by the settings' names.
type Base struct {
	Values  Values
	Sources map[string]Source
}

// Step notes what a further source says: next is the values with it.
func (b *Base) Step(next Values, from Source) {
	if b.Sources == nil {
		b.Sources = make(map[string]Source)
	}
	for _, d := range definitions() {
		if !reflect.DeepEqual(d.get(&b.Values), d.get(&next)) {
			b.Sources[d.name] = from
		}
	}
	b.Values = next
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }
