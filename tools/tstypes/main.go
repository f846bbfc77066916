// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command tstypes writes the types of the wire for TypeScript, from the OpenAPI document.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// schema is what the document's schemas use of JSON Schema.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"`
	Enum       []any              `json:"enum"`
	Items      *schema            `json:"items"`
	Properties map[string]*schema `json:"properties"`
	Additional json.RawMessage    `json:"additionalProperties"`
	Required   []string           `json:"required"`
	OneOf      []*schema          `json:"oneOf"`
	AnyOf      []*schema          `json:"anyOf"`
	Text       string             `json:"description"`
}

func main() {
	from := flag.String("document", "api/rest/testdata/openapi.json", "the document")
	out := flag.String("out", "console/ui/src/wire.ts", "the file to write")
	flag.Parse()
	if err := run(*from, *out); err != nil {
		fmt.Fprintln(os.Stderr, "tstypes:", err)
		os.Exit(1)
	}
}

func run(from, out string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var doc struct {
		Components struct {
			Schemas map[string]*schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("// Made of the OpenAPI document by tools/tstypes. DO NOT EDIT.\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		s := doc.Components.Schemas[name]
		if s.Properties == nil {
			fmt.Fprintf(&b, "\nexport type %s = %s;\n", name, typeOf(s, ""))
			continue
		}
		fmt.Fprintf(&b, "\nexport interface %s %s\n", name, fields(s, ""))
	}
	return os.WriteFile(out, []byte(b.String()), 0o644)
}

func fields(s *schema, indent string) string {
	var b strings.Builder
	b.WriteString("{\n")
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		optional := "?"
		if slices.Contains(s.Required, name) {
			optional = ""
		}
		fmt.Fprintf(&b, "%s  %s%s: %s;\n", indent, quote(name), optional, typeOf(s.Properties[name], indent+"  "))
	}
	b.WriteString(indent + "}")
	return b.String()
}

func quote(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == "" {
		return name
	}
	return fmt.Sprintf("%q", name)
}

func typeOf(s *schema, indent string) string {
	switch {
	case s == nil:
		return "unknown"
	case s.Ref != "":
		return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
	case len(s.OneOf) > 0 || len(s.AnyOf) > 0:
		var all []string
		for _, one := range append(s.OneOf, s.AnyOf...) {
			all = append(all, typeOf(one, indent))
		}
		return strings.Join(all, " | ")
	case len(s.Enum) > 0:
		var all []string
		for _, v := range s.Enum {
			text, _ := json.Marshal(v) // it came of JSON
			all = append(all, string(text))
		}
		return strings.Join(all, " | ")
	}
	var all []string
	for _, t := range types(s.Type) {
		switch t {
		case "integer", "number":
			all = append(all, "number")
		case "string", "boolean", "null":
			all = append(all, t)
		case "array":
			item := typeOf(s.Items, indent)
			if strings.Contains(item, "|") {
				item = "(" + item + ")"
			}
			all = append(all, item+"[]")
		case "object":
			all = append(all, object(s, indent))
		}
	}
	if len(all) == 0 {
		return "unknown"
	}
	return strings.Join(all, " | ")
}

func object(s *schema, indent string) string {
	if len(s.Properties) > 0 {
		return fields(s, indent)
	}
	var of schema
	if len(s.Additional) > 0 && json.Unmarshal(s.Additional, &of) == nil {
		return "Record<string, " + typeOf(&of, indent) + ">"
	}
	return "Record<string, unknown>"
}

func types(t any) (out []string) {
	switch t := t.(type) {
	case string:
		return []string{t}
	case []any:
		for _, one := range t {
			if text, ok := one.(string); ok {
				out = append(out, text)
			}
		}
	}
	return out
}
