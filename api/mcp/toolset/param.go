// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/sandbox"
)

// kind is a JSON type of an argument.
type kind string

const (
	Text    kind = "string"
	Integer kind = "integer"
	Number  kind = "number"
	Boolean kind = "boolean"
	Texts   kind = "object" // of strings: variables
	Nested  kind = "nested" // has a schema of its own
)

// Param is one argument of a tool: its schema, and how lenient it is read.
type Param struct {
	Name     string
	Kind     kind
	About    string // for the model; says the default
	Required bool
	Enum     []string
	Min, Max float64  // of numbers, where max is above min
	Aliases  []string // what models write instead
	Field    string   // what the engine calls it, where that is another name
	Schema   string   // of a nested one
}

// Schema writes the input schema of a tool: flat, single types, no references,
// in the order of params. The dialect is what every model's vendor takes.
func Schema(params []Param) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	var required []string
	for i, p := range params {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(Quote(p.Name) + ":")
		p.write(&b)
		if p.Required {
			required = append(required, Quote(p.Name))
		}
	}
	b.WriteByte('}')
	if required != nil {
		b.WriteString(`,"required":[` + strings.Join(required, ",") + "]")
	}
	b.WriteByte('}')
	return json.RawMessage(b.String())
}

func (p *Param) write(b *strings.Builder) {
	if p.Kind == Nested {
		b.WriteString(p.Schema)
		return
	}
	b.WriteString(`{"type":"` + string(p.Kind) + `","description":` + Quote(p.About))
	if p.Kind == Texts {
		b.WriteString(`,"additionalProperties":{"type":"string"}`)
	}
	if p.Enum != nil {
		list, _ := json.Marshal(p.Enum) // strings marshal
		b.WriteString(`,"enum":` + string(list))
	}
	if p.Max > p.Min {
		b.WriteString(`,"minimum":` + Decimal(p.Min) + `,"maximum":` + Decimal(p.Max))
	}
	b.WriteByte('}')
}

// Quote shows a string as JSON.
func Quote(s string) string {
	q, _ := json.Marshal(s) // strings marshal
	return string(q)
}

// Decimal shows a number as short as it can be.
func Decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// MaxMinutes is the longest clock.
const MaxMinutes = float64(sandbox.MaxClock / time.Minute)

// Minutes is so many minutes.
func Minutes(m float64) time.Duration { return time.Duration(m * float64(time.Minute)) }

// PathParam is the argument that says which file.
func PathParam(about string) Param {
	return Param{Name: "path", Kind: Text, Required: true, About: about + " Absolute, or relative to /workspace.", Aliases: []string{"file_path", "file", "filename"}}
}

// Seconds is so many seconds.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// LeastTimeout is the shortest of a command, in seconds.
const LeastTimeout = 0.1
