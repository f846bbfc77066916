// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine/volume"
	"sandpit.dev/sandbox"
)

func createVolume() toolset.Tool {
	return toolset.Tool{
		Name: "create_volume", Title: "Create a volume",
		About: "Make an empty volume: a directory that outlives sandboxes and that several can have at once. create_sandbox with volumes mounts it.",
		Params: []toolset.Param{
			{Name: "name", Kind: toolset.Text, Required: true, About: "Its name, 1 to 255 characters without /.", Aliases: []string{"volume", "volume_name"}},
			{Name: "size_mb", Kind: toolset.Integer, Min: 0, Max: sandbox.MaxDiskMB, About: "The most that it holds, in MiB. Default 0: no limit of its own.", Aliases: []string{"size"}},
			{Name: "lifetime_hours", Kind: toolset.Number, Min: 0, Max: sandbox.MaxVolumeLifetime.Hours(), Field: "lifetime_seconds", About: "Delete it after this, once no sandbox mounts it. Default 0: never.", Aliases: []string{"lifetime"}},
		},
		Example: `{"name": "data"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			r := volume.Request{Name: c.Args.Text("name"), SizeMB: int(c.Args.Number("size_mb", 0)), Lifetime: (time.Duration(c.Args.Number("lifetime_hours", 0) * float64(time.Hour))).Round(time.Second)}
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			v, err := c.Volumes.CreateVolume(ctx, c.Caller, r)
			if err != nil {
				return nil, err
			}
			sh := volumeShapeFor(ctx, c, &v)
			return &toolset.Answer{
				Verdict: "created volume " + v.Name,
				Lines: []string{
					sh.line(),
					fmt.Sprintf(`create_sandbox with {"volumes": %s} mounts it`, toolset.Quote(v.Name+":"+sandbox.Workspace+"/data")),
				},
				Structured: sh,
			}, nil
		},
	}
}

// volumeShape is a volume as the tools show it.
type volumeShape struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	SizeMB    int      `json:"size_mb,omitempty"`
	UsedBytes *int64   `json:"used_bytes,omitempty"`
	MountedBy []string `json:"mounted_by"` // sandboxes, those that are down too
	CreatedAt string   `json:"created_at"`
	ExpiresAt string   `json:"expires_at,omitempty"` // it is deleted then, or as soon after as none mounts it
}

func volumeShapeFor(ctx context.Context, c *toolset.Call, v *volume.Info) volumeShape {
	out := volumeShape{ID: string(v.ID), Name: v.Name, SizeMB: v.SizeMB, MountedBy: make([]string, 0, len(v.Users)), CreatedAt: toolset.TimeText(v.CreatedAt), ExpiresAt: toolset.TimeText(v.ExpiresAt)}
	if v.UsedBytes >= 0 {
		out.UsedBytes = &v.UsedBytes
	}
	for i, id := range v.Users {
		name := string(id)
		if i < mostNamed { // the rest by their ids, which cost nothing to know
			if s, err := c.Sandboxes.Get(ctx, c.Caller, name); err == nil {
				name = s.Ref()
			}
		}
		out.MountedBy = append(out.MountedBy, name)
	}
	return out
}

func (v *volumeShape) line() string {
	line := v.Name + " · id " + v.ID
	if v.SizeMB > 0 {
		line += fmt.Sprintf(" · at most %d MiB", v.SizeMB)
	}
	if v.UsedBytes != nil {
		line += " · holds " + toolset.BytesText(*v.UsedBytes)
	}
	if v.ExpiresAt != "" {
		line += " · expires " + v.ExpiresAt
	}
	if len(v.MountedBy) > 0 {
		return line + " · mounted by " + named(v.MountedBy)
	}
	return line + " · mounted by none"
}

// volumeList is the structured answer of list_volumes.
type volumeList struct {
	Volumes []volumeShape `json:"volumes"`
}

func listVolumes() toolset.Tool {
	return toolset.Tool{
		Name: "list_volumes", Title: "List volumes", ReadOnly: true, Idempotent: true,
		About:   "List your volumes with what they hold and which sandboxes mount them.",
		Example: `{}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			all, err := c.Volumes.Volumes(ctx, c.Caller)
			if err != nil {
				return nil, err
			}
			out := volumeList{Volumes: make([]volumeShape, 0, len(all))}
			ans := &toolset.Answer{Verdict: toolset.Counted(len(all), "volume", "volumes")}
			for i := range all {
				sh := volumeShapeFor(ctx, c, &all[i])
				out.Volumes = append(out.Volumes, sh)
				ans.Lines = append(ans.Lines, sh.line())
			}
			ans.Structured = out
			return ans, nil
		},
	}
}

func deleteVolume() toolset.Tool {
	return toolset.Tool{
		Name: "delete_volume", Title: "Delete a volume", Destructive: true,
		About: "Delete a volume for ever, with all that is in it. It is refused while a sandbox mounts it.",
		Params: []toolset.Param{
			{Name: "volume", Kind: toolset.Text, Required: true, About: "Its name or id.", Aliases: []string{"name", "id", "volume_name", "volume_id"}},
		},
		Example: `{"volume": "data"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			name := c.Args.Text("volume")
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			if err := c.Volumes.DeleteVolume(ctx, c.Caller, name); err != nil {
				return nil, err
			}
			return &toolset.Answer{Verdict: "deleted volume " + name + " with all that was in it"}, nil
		},
	}
}

// paramVolumes is the argument that says what a sandbox mounts.
func paramVolumes(about string) toolset.Param {
	return toolset.Param{Name: "volumes", Kind: toolset.Text, Field: "mounts", About: about, Aliases: []string{"mounts"}}
}

// mounts reads them: NAME:/path with commas between; NAME/sub is a directory of the
// volume, and :ro behind the path means that nothing can be written. A list, of the same
// texts or of objects, is taken as well. Nil: nothing was said; problems are kept in a.
func mounts(a *toolset.Args) []volume.Mount {
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
	out := make([]volume.Mount, 0, len(list))
	for _, raw := range list {
		if m, ok := mount(raw); ok {
			out = append(out, m)
		} else {
			a.Add("volumes", "%s is not of the form NAME:/path, NAME/sub:/path or NAME:/path:ro", toolset.Shown(raw))
		}
	}
	return out
}

func mount(raw json.RawMessage) (m volume.Mount, ok bool) {
	var one string
	if json.Unmarshal(raw, &one) != nil {
		var o struct {
			Volume   string
			Path     string
			Sub      string `json:"sub_path"`
			ReadOnly bool   `json:"read_only"`
		}
		err := json.Unmarshal(raw, &o)
		return volume.Mount{Volume: o.Volume, Path: o.Path, Sub: o.Sub, ReadOnly: o.ReadOnly}, err == nil && o.Volume != "" && o.Path != ""
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
