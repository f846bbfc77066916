// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"sandpit.dev/engine/prewarm"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// pools returns the pools in the engine's form. The engine checks them.
func (c *Config) pools() ([]prewarm.Pool, error) { return c.poolsOf(c.Pools) }

// poolsOf is pools of a list.
func (c *Config) poolsOf(list []PoolConfig) ([]prewarm.Pool, error) {
	out := make([]prewarm.Pool, len(list))
	for n, p := range list {
		p, err := c.ofTemplate(p)
		if err != nil {
			return nil, err
		}
		limits, err := c.sized("pools", p.Size, p.limits())
		if err != nil {
			return nil, err
		}
		out[n] = prewarm.Pool{Name: p.Name, Image: p.Image, Template: p.Template, Min: p.Min, Max: p.Max, Refill: p.Refill, Limits: limits}
	}
	return out, nil
}

func (p PoolConfig) limits() sandbox.Limits {
	return sandbox.Limits{CPU: p.CPU, MemoryMB: p.MemoryMB, DiskMB: p.DiskMB, Pids: p.Pids}
}

// poolField is a field of a pool in the text of the setting pools, by its name in the file.
type poolField struct {
	name string
	to   any // a pointer
}

func (p *PoolConfig) fields() []poolField {
	return []poolField{
		{"name", &p.Name}, {"image", &p.Image}, {"template", &p.Template}, {"size", &p.Size},
		{"cpu_cores", &p.CPU}, {"memory_mb", &p.MemoryMB}, {"disk_mb", &p.DiskMB}, {"pids", &p.Pids},
		{"min", &p.Min}, {"max", &p.Max}, {"refill", &p.Refill},
	}
}

// String returns the fields that say something as words like image=python.
func (p PoolConfig) String() string {
	var words []string
	for _, f := range p.fields() {
		text := ""
		switch v := f.to.(type) {
		case *string:
			if text = *v; strings.ContainsAny(text, " \t\n\",=") {
				text = strconv.Quote(text)
			}
		case *int:
			if *v != 0 {
				text = strconv.Itoa(*v)
			}
		case *float64:
			if *v != 0 {
				text = strconv.FormatFloat(*v, 'f', -1, 64)
			}
		}
		if text != "" {
			words = append(words, f.name+"="+text)
		}
	}
	return strings.Join(words, " ")
}

// poolTexts returns pools as the setting has them.
func poolTexts(list []PoolConfig) []string {
	all := make([]string, 0, len(list))
	for _, p := range list {
		all = append(all, cmp.Or(p.String(), "min=0"))
	}
	return all
}

// parsePools reads what poolTexts writes. The error is about the setting.
func parsePools(texts []string) ([]PoolConfig, error) {
	all := make([]PoolConfig, 0, len(texts))
	for _, text := range texts {
		p, err := parsePool(text)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func parsePool(text string) (p PoolConfig, err error) {
	bad := func(what string, args ...any) (PoolConfig, error) {
		return PoolConfig{}, fault.InvalidField("pools", what, args...).
			WithRemedy("a pool is like: image=python size=small min=2 max=8; the words are those of a pool in the file")
	}
	fields := p.fields()
	seen := make(map[string]bool)
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		name, after, ok := strings.Cut(rest, "=")
		at := slices.IndexFunc(fields, func(f poolField) bool { return f.name == name })
		if !ok || at < 0 {
			return bad("%q does not begin with a word like image=python", sandbox.Clip(rest, 80))
		}
		if seen[name] {
			return bad("%q has %s twice", sandbox.Clip(text, 80), name)
		}
		seen[name] = true
		var value string
		if strings.HasPrefix(after, `"`) {
			quoted, err := strconv.QuotedPrefix(after)
			if err != nil {
				return bad("%s=%s has quotes that do not end", name, sandbox.Clip(after, 80))
			}
			value, _ = strconv.Unquote(quoted) // it was seen to be a text
			rest = after[len(quoted):]
		} else {
			value, rest, _ = strings.Cut(after, " ")
		}
		switch to := fields[at].to.(type) {
		case *string:
			*to = value
		case *int:
			if *to, err = strconv.Atoi(value); err != nil {
				return bad("%s=%s is not a whole number", name, sandbox.Clip(value, 40))
			}
		case *float64:
			if *to, err = strconv.ParseFloat(value, 64); err != nil {
				return bad("%s=%s is not a number", name, sandbox.Clip(value, 40))
			}
		}
	}
	if len(seen) == 0 {
		return bad("one of them is empty")
	}
	return p, nil
}
