// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"encoding/json"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// paramVolumes is the argument that says what a sandbox mounts.
func paramVolumes(about string) toolset.Param {
	return toolset.Param{Name: "volumes", Kind: toolset.Text, Field: "mounts", About: about, Aliases: []string{"mounts"}}
}

// mounts reads them: NAME:/path with commas between; NAME/sub is a directory of the
// volume, and :ro behind the path means that nothing can be written. A list, of the same
// texts or of objects, is taken as well. Nil: nothing was said; problems are kept in a.
func mounts(a *toolset.Args) []engine.MountRequest {
	v, ok := a.Values["volumes"]
	if !ok {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		for _, one := range strings.Split(a.Text("volumes"), ",") {
			if one = strings.TrimSpace(one); one != "" {
				list = append(list, json.RawMessage(toolset.Quote(one)))
			}
		}
	}
	out := make([]engine.MountRequest, 0, len(list))
	for _, raw := range list {
		if m, ok := mount(raw); ok {
			out = append(out, m)
		} else {
			a.Add("volumes", "%s is not of the form NAME:/path, NAME/sub:/path or NAME:/path:ro", toolset.Shown(raw))
		}
	}
	return out
}

func mount(raw json.RawMessage) (m engine.MountRequest, ok bool) {
	var one string
	if json.Unmarshal(raw, &one) != nil {
		var o struct {
			Volume   string
			Path     string
			Sub      string `json:"sub_path"`
			ReadOnly bool   `json:"read_only"`
		}
		err := json.Unmarshal(raw, &o)
		return engine.MountRequest{Volume: o.Volume, Path: o.Path, Sub: o.Sub, ReadOnly: o.ReadOnly}, err == nil && o.Volume != "" && o.Path != ""
	}
	one, m.ReadOnly = strings.CutSuffix(one, ":ro")
	// No volume's name has a slash, so that this is where the path begins.
	i := strings.Index(one, ":/")
	if i < 1 {
		return m, false
	}
	m.Volume, m.Path = one[:i], one[i+1:]
	m.Volume, m.Sub, _ = strings.Cut(m.Volume, "/")
	return m, m.Volume != ""
}

// mountText is a mount as create_sandbox takes it.
func mountText(m sandbox.Mount) string {
	out := m.Name
	if m.Sub != "" {
		out += "/" + m.Sub
	}
	out += ":" + m.Path
	if m.ReadOnly {
		out += ":ro"
	}
	return out
}
