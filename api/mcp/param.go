// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"strconv"
	"strings"
)

// kind is a JSON type of an argument.
type kind string

const (
	text    kind = "string"
	integer kind = "integer"
	number  kind = "number"
	boolean kind = "boolean"
	texts   kind = "object" // of strings: variables
	nested  kind = "nested" // has a schema of its own
)

// param is one argument of a tool: its schema, and how lenient it is read.
type param struct {
	name     string
	kind     kind
	about    string // for the model; says the default
	required bool
	enum     []string
	min, max float64  // of numbers, where max is above min
	aliases  []string // what models write instead
	field    string   // what the engine calls it, where that is another name
	schema   string   // of a nested one
}

// schema writes the input schema of a tool: flat, single types, no references,
// in the order of params. The dialect is what every model's vendor takes.
func schema(params []param) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	var required []string
	for i, p := range params {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(p.name) + ":")
		p.write(&b)
		if p.required {
			required = append(required, quote(p.name))
		}
	}
	b.WriteByte('}')
	if required != nil {
		b.WriteString(`,"required":[` + strings.Join(required, ",") + "]")
	}
	b.WriteByte('}')
	return json.RawMessage(b.String())
}

func (p *param) write(b *strings.Builder) {
	if p.kind == nested {
		b.WriteString(p.schema)
		return
	}
	b.WriteString(`{"type":"` + string(p.kind) + `","description":` + quote(p.about))
	if p.kind == texts {
		b.WriteString(`,"additionalProperties":{"type":"string"}`)
	}
	if p.enum != nil {
		list, _ := json.Marshal(p.enum) // strings marshal
		b.WriteString(`,"enum":` + string(list))
	}
	if p.max > p.min {
		b.WriteString(`,"minimum":` + decimal(p.min) + `,"maximum":` + decimal(p.max))
	}
	b.WriteByte('}')
}

func quote(s string) string {
	q, _ := json.Marshal(s) // strings marshal
	return string(q)
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
