// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"maps"
	"slices"

	"sandpit.dev/api/rest/images"
	"sandpit.dev/api/rest/shape"
	"sandpit.dev/engine/templates"
	"sandpit.dev/engine/volume"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
	"sandpit.dev/template"
)

// EventObject returns a record as events have it: as the operations on its noun answer it, without values of
// variables, output of commands and what would have to be measured.
func EventObject(record any) any {
	switch r := record.(type) {
	case *sandbox.Sandbox:
		out := shape.Sandbox(r)
		if out.Template != nil && out.Template.Start != nil {
			out.Template.Start.Output = ""
		}
		return out
	case *sandbox.Snapshot:
		return snapshotOf(r)
	case *sandbox.Volume:
		return volumeOf(&volume.Info{Volume: *r, UsedBytes: -1})
	case *template.Template:
		out := templateOf(r, &templates.Kept{})
		names := make(map[string]string, len(out.Env))
		for _, name := range slices.Sorted(maps.Keys(out.Env)) {
			names[name] = ""
		}
		out.Env = names
		if out.Failure != nil {
			out.Failure.Output = ""
		}
		return out
	case *image.Status:
		return images.ImageOf(*r)
	}
	return nil
}
