// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"sandpit.dev/image"
)

// ImagesConfig is where images are and which of them sandboxes may have. In a file a text in its
// place is Dir.
type ImagesConfig struct {
	Dir string `yaml:"dir"` // directory of images; "": Data/images
	// Catalogue is a directory of more entries of the catalogue, beside ours; "": none.
	Catalogue string `yaml:"catalogue"`
	// Default is a name of the image of a sandbox that names none; "": python.
	Default string `yaml:"default"`
	// Allowed are names and patterns of the images that new sandboxes may have; empty: all.
	Allowed []string `yaml:"allowed"`
	// Registries are those of images that the operator says something of.
	Registries []RegistryConfig `yaml:"registries"`
	// ProjectMaxMB is how much a project's tokens may bring of images that others made; 0: 20480.
	ProjectMaxMB int `yaml:"project_max_mb"`
	// Exact refuses names that say something else than what is inside: python-3.12, where there is
	// another Python.
	Exact bool `yaml:"exact"`
}

// UnmarshalYAML overrides the fields that a text or a mapping has.
func (c *ImagesConfig) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&c.Dir)
	}
	// A node does not know that unknown keys are errors, a decoder does. It counts lines from its
	// own beginning.
	text, err := yaml.Marshal(n)
	if err != nil {
		return err
	}
	type plain ImagesConfig // which has no UnmarshalYAML
	dec := yaml.NewDecoder(bytes.NewReader(append([]byte(strings.Repeat("\n", max(n.Line-1, 0))), text...)))
	dec.KnownFields(true)
	if err := dec.Decode((*plain)(c)); err != nil {
		return fmt.Errorf("images: %s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "daemon.plain", "images"))
	}
	return nil
}

func (c ImagesConfig) policy() image.Policy {
	return image.Policy{Default: c.Default, Allowed: c.Allowed, Exact: c.Exact}
}
