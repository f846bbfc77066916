// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/skill"
)

// The skill that teaches an agent the sandboxes. Clients that know the extension of
// skills find it by that, all others as plain resources.
const (
	extensionSkills = "io.modelcontextprotocol/skills"
	skillRoot       = "skill://sandpit/"
)

//go:embed skill
var skillFiles embed.FS

// listedSkill is a skill as the extension lists it.
type listedSkill struct {
	URI         string         `json:"uri"`
	Frontmatter map[string]any `json:"frontmatter"`
	Resources   []skillPart    `json:"resources"`
	texts       map[string]string
}

// skillPart is one file of a skill.
type skillPart struct {
	URI    string `json:"uri"`
	Digest string `json:"digest,omitempty"`
	Size   int    `json:"size"`
}

// readSkill reads the skill's files, its own first.
func readSkill() (*listedSkill, error) {
	s := &listedSkill{URI: skillRoot + skill.File, texts: make(map[string]string)}
	sub, err := fs.Sub(skillFiles, "skill")
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(sub, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(sub, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		s.texts[skillRoot+name] = string(data)
		s.Resources = append(s.Resources, skillPart{skillRoot + name, "sha256:" + hex.EncodeToString(sum[:]), len(data)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(s.Resources, func(a, b skillPart) int {
		switch s.URI {
		case a.URI:
			return -1
		case b.URI:
			return 1
		}
		return strings.Compare(a.URI, b.URI)
	})
	s.Frontmatter, err = frontmatter(s.texts[s.URI])
	return s, err
}

// frontmatter reads the lines "key: text" that a skill's file begins with, which is
// all that ours has.
func frontmatter(text string) (map[string]any, error) {
	head, ok := strings.CutPrefix(text, "---\n")
	head, _, end := strings.Cut(head, "\n---\n")
	if !ok || !end {
		return nil, fmt.Errorf("the skill has no frontmatter")
	}
	out := make(map[string]any)
	for line := range strings.Lines(head) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			return nil, fmt.Errorf("the line %q of the skill's frontmatter has no value", line)
		}
		out[key] = value
	}
	return out, nil
}

// serveSkill adds the skill to a server, as resources.
func serveSkill(s *mcp.Server, k *listedSkill) {
	for _, part := range k.Resources {
		r := &mcp.Resource{URI: part.URI, MIMEType: "text/markdown", Size: int64(part.Size)}
		r.Name = strings.TrimSuffix(path.Base(part.URI), ".md")
		r.Description = "A part of the skill sandpit."
		if part.URI == k.URI {
			r.Name, _ = k.Frontmatter["name"].(string)
			r.Description, _ = k.Frontmatter["description"].(string)
		}
		s.AddResource(r, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: part.URI, MIMEType: r.MIMEType, Text: k.texts[part.URI]}}}, nil
		})
	}
}
