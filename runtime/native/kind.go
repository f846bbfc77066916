// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"path/filepath"

	"sandpit.dev/fault"
	"sandpit.dev/linux/host"
	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Kind is the native runtime as a server is told of it. See [runtime.HostKind].
type Kind struct {
	// Layers forces how writable layers are kept: btrfs, loop, plain; "": the
	// best that this host can.
	Layers string `yaml:"layers"`
	// Blanks was a setting of earlier versions. Whoever sets it learns what to set instead.
	Blanks string `yaml:"blanks"`
}

var _ runtime.HostKind = (*Kind)(nil)

// Name returns "native".
func (k *Kind) Name() string { return "native" }

// Variables returns those of the section.
func (k *Kind) Variables() map[string]any {
	return map[string]any{"SANDPIT_LAYERS": &k.Layers, "SANDPIT_BLANKS": &k.Blanks}
}

// Check checks the section.
func (k *Kind) Check() error {
	switch k.Layers {
	case "", "btrfs", "loop", "plain":
	default:
		return fault.InvalidField("native.layers", "%q is not btrfs, loop or plain", sandbox.Clip(k.Layers, 20))
	}
	if k.Blanks != "" {
		return fault.InvalidField("native.blanks", "blanks are not made any more: pools are the sandboxes that are made ahead").
			WithRemedy("take native.blanks and SANDPIT_BLANKS away; set pools or SANDPIT_POOL to have another number of sandboxes ready, or none. See docs/operations.md")
	}
	return nil
}

// Open opens the driver.
func (k *Kind) Open(ctx context.Context, o runtime.OpenOptions) (runtime.Driver, error) {
	opts := Options{
		Dir: o.Dir, Namespace: o.Namespace, Store: layer.Identity(o.Installation), Agent: o.Agent,
		Layers: layer.Kind(k.Layers), Logger: o.Logger,
	}
	d, err := Open(ctx, opts)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Store returns the directory of the layers.
func (k *Kind) Store(dir string) string { return layersDir(dir) }

// Private lists the directories of the driver, the store and the agent, and that of the
// instances, which may be in memory.
func (k *Kind) Private(p runtime.Place) []runtime.Directory {
	return []runtime.Directory{
		{Name: k.Name(), Path: p.Dir}, {Name: k.Name() + "/layers", Path: layersDir(p.Dir)},
		{Name: k.Name() + "/agent", Path: agentDir(p.Dir)}, {Name: k.Name() + "/instances", Path: host.InstancesDir(p.Dir, p.Namespace)},
	}
}

func layersDir(dir string) string { return filepath.Join(dir, "layers") }
func agentDir(dir string) string  { return filepath.Join(dir, "agent") }
