// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// format is how a command prints its data.
type format string

const (
	asText format = "text"
	asJSON format = "json"
	asYAML format = "yaml"
	asName format = "name"
	asWide format = "wide" // a table with more columns
)

// formatFlag adds -o for a command that prints text or JSON.
func formatFlag(c *cobra.Command) *format { return formatsFlag(c, asText, asText, asJSON) }

// formatsFlag adds -o with the words that c takes.
func formatsFlag(c *cobra.Command, normal format, words ...format) *format {
	f := &formatValue{chosen: normal, words: words}
	c.Flags().VarP(f, "output", "o", f.choices())
	var completions []string
	for _, w := range words {
		completions = append(completions, string(w))
	}
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(completions, cobra.ShellCompDirectiveNoFileComp))
	return &f.chosen
}

// formatValue is the flag -o.
type formatValue struct {
	chosen format
	words  []format
}

func (f *formatValue) String() string { return string(f.chosen) }
func (f *formatValue) Type() string   { return "FORMAT" }

func (f *formatValue) Set(s string) error {
	if !slices.Contains(f.words, format(s)) {
		return fmt.Errorf("%q is not a valid format: use %s", s, f.choices())
	}
	f.chosen = format(s)
	return nil
}

func (f *formatValue) choices() string {
	var b strings.Builder
	for i, w := range f.words {
		switch {
		case i > 0 && i == len(f.words)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// templateFlag is a flag for a template of Go's text/template, which prints one thing. Its fields
// are those of JSON; \t and \n are what they are in Go, since shells hand them on as two letters.
type templateFlag struct{ t *template.Template }

func (f *templateFlag) Type() string { return "TEMPLATE" }

func (f *templateFlag) String() string { return "" }

func (f *templateFlag) Set(s string) error {
	t, err := template.New("").Funcs(template.FuncMap{
		"json": func(v any) (string, error) { b, err := json.Marshal(v); return string(b), err },
		"join": func(sep string, list []any) string {
			var words []string
			for _, one := range list {
				words = append(words, fmt.Sprint(one))
			}
			return strings.Join(words, sep)
		},
	}).Parse(strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(s))
	if err != nil {
		return fmt.Errorf("%q is not a valid template: %s; write it as '{{.id}} {{.status}}', with the fields of -o json",
			s, strings.TrimPrefix(err.Error(), "template: "))
	}
	f.t = t
	return nil
}

// write prints v with the template, and ends the line.
func (f *templateFlag) write(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber() // a size stays 1048576, and is not 1.048576e+06
	var plain any
	if err := dec.Decode(&plain); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := f.t.Execute(&out, inert(plain)); err != nil {
		return fmt.Errorf("--format cannot print this: %w", err)
	}
	out.WriteByte('\n')
	_, err = w.Write(out.Bytes())
	return err
}

// inert makes all text in v printable: it may come out of a sandbox.
func inert(v any) any {
	switch v := v.(type) {
	case string:
		return printable(v)
	case []any:
		for i := range v {
			v[i] = inert(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = inert(v[name])
		}
	}
	return v
}

// writeData prints v as JSON or YAML.
func writeData(w io.Writer, as format, v any) error {
	if as == asYAML {
		return writeYAML(w, v)
	}
	return writeJSON(w, v)
}

// writeJSON prints v for programs.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// writeYAML prints v as its JSON says it, with the fields in the same order.
func writeYAML(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	n, err := yamlNode(dec)
	if err != nil {
		return err
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return err
	}
	return enc.Close()
}

// yamlNode reads the next value of a JSON text.
func yamlNode(dec *json.Decoder) (*yaml.Node, error) {
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim: // the beginning of an object or a list; a list has no names
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		if t == '[' {
			n = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		}
		for dec.More() {
			part, err := yamlNode(dec)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, part)
		}
		_, err := dec.Token() // its end
		return n, err
	case string:
		n := new(yaml.Node)
		return n, n.Encode(t) // and not by hand: it quotes what older YAML takes for a bool, such as no
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(t.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: t.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(t)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}
