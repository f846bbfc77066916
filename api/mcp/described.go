// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
	"sandpit.dev/internal/spelling"
	"sandpit.dev/sandbox"
)

// Description is what an operator says of a tool to the models that see it.
type Description struct {
	Override string // in place of our own; empty: ours stays
	Append   string // behind it, on a line of its own
}

// Descriptions are those of an operator: by profile, then by tool.
type Descriptions map[string]map[string]Description

// Bounds of descriptions. A model reads all of a list before its first word.
const (
	maxDescription = 4000 // bytes of one
	maxListTokens  = 6000 // of a list, at four bytes a token, unless it has more by itself
)

// describe has the tools of profiles say what the operator says. An error is about mcp.descriptions.
func describe(all []toolset.Profile, groups []string, by Descriptions) error {
	for name := range maps.Keys(by) {
		if !slices.ContainsFunc(all, func(p toolset.Profile) bool { return p.Name == name }) {
			return fault.InvalidField("mcp.descriptions", "there is no profile of tools %q", sandbox.Clip(name, 40)).WithRemedy("there are %s", strings.Join(Profiles(), ", "))
		}
	}
	for i := range all {
		of := by[all[i].Name]
		if len(of) == 0 {
			continue
		}
		own := all[i].Tools
		if err := checkDescriptions(all[i].Name, own(toolset.Groups()), of); err != nil {
			return err
		}
		all[i].Tools = func(groups []string) []toolset.Tool {
			tools := slices.Clone(own(groups))
			for j := range tools {
				d := of[tools[j].Name]
				if d.Override != "" {
					tools[j].About = d.Override
				}
				if d.Append != "" {
					tools[j].About += "\n" + d.Append
				}
			}
			return tools
		}
		most := max(maxListTokens, tokensOf(own(groups)))
		if n := tokensOf(all[i].Tools(groups)); n > most {
			return fault.InvalidField("mcp.descriptions."+all[i].Name, "the list of tools comes to about %d tokens with them, more than %d", n, most).
				WithRemedy("shorten them, or switch groups of tools off")
		}
	}
	return nil
}

func checkDescriptions(profile string, tools []toolset.Tool, of map[string]Description) error {
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		field := "mcp.descriptions." + profile + "." + sandbox.Clip(name, 40)
		if !slices.Contains(names, name) {
			err := fault.InvalidField(field, "there is no such tool")
			if near := spelling.Nearest(name, names); near != "" {
				return err.WithRemedy("did you mean %s?", near)
			}
			return err.WithRemedy("its tools are %s", strings.Join(names, ", "))
		}
		for _, text := range []string{of[name].Override, of[name].Append} {
			if len(text) > maxDescription || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				return fault.InvalidField(field, "is not a text of at most %d bytes", maxDescription)
			}
		}
	}
	return nil
}

// tokensOf returns about how many tokens the list of tools takes, at four bytes each.
func tokensOf(tools []toolset.Tool) int {
	total := 0
	for _, t := range tools {
		b, err := json.Marshal(&mcp.Tool{Name: t.Name, Title: t.Title, Description: t.About, InputSchema: toolset.Schema(t.Params)})
		if err == nil {
			total += len(b)
		}
	}
	return total / 4
}
