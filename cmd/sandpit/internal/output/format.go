// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// Format is how a command prints its data.
type Format string

const (
	AsText Format = "text"
	AsJSON Format = "json"
	AsYAML Format = "yaml"
	AsName Format = "name"
	AsWide Format = "wide" // a table with more columns
)

// FormatFlag adds -o for a command that prints text or data.
func FormatFlag(c *cobra.Command) *Format { return FormatsFlag(c, AsText, AsText, AsJSON, AsYAML) }

// NamedFlag adds -o for a command that prints one thing, or its name.
func NamedFlag(c *cobra.Command) *Format {
	return FormatsFlag(c, AsText, AsText, AsName, AsJSON, AsYAML)
}

// IsData reports whether f is for programs: JSON or YAML.
func (f Format) IsData() bool { return f == AsJSON || f == AsYAML }

// One prints one thing as data, by its name, or as text.
func One(w io.Writer, as Format, v any, name, text string) error {
	switch {
	case as.IsData():
		return Data(w, as, v)
	case as == AsName:
		text = name
	}
	_, err := fmt.Fprintln(w, Printable(text))
	return err
}

// FormatsFlag adds -o with the words that c takes.
func FormatsFlag(c *cobra.Command, normal Format, words ...Format) *Format {
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
	chosen Format
	words  []Format
}

func (f *formatValue) String() string { return string(f.chosen) }

func (f *formatValue) Type() string { return "FORMAT" }

func (f *formatValue) Set(s string) error {
	if !slices.Contains(f.words, Format(s)) {
		return fmt.Errorf("%q is not a valid format: use %s", s, f.choices())
	}
	f.chosen = Format(s)
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

// Data prints v as JSON or YAML.
func Data(w io.Writer, as Format, v any) error {
	if as == AsYAML {
		return writeYAML(w, v)
	}
	return JSON(w, v)
}

// JSON prints v for programs.
func JSON(w io.Writer, v any) error {
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
