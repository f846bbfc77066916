// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"

	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

func createVolume() tool {
	return tool{
		name: "create_volume", title: "Create a volume",
		about: "Make an empty volume: a directory that outlives sandboxes and that several can have at once. create_sandbox with volumes mounts it.",
		params: []param{
			{name: "name", kind: text, required: true, about: "Its name, 1 to 255 characters without /.", aliases: []string{"volume", "volume_name"}},
			{name: "size_mb", kind: integer, min: 0, max: sandbox.MaxDiskMB, about: "The most that it holds, in MiB. Default 0: no limit of its own.", aliases: []string{"size"}},
		},
		example: `{"name": "data"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			r := engine.VolumeRequest{Name: c.args.text("name"), SizeMB: int(c.args.number("size_mb", 0))}
			if err := c.args.err(); err != nil {
				return nil, err
			}
			v, err := c.engine.CreateVolume(ctx, c.Caller, r)
			if err != nil {
				return nil, err
			}
			sh := c.volumeShape(ctx, &v)
			return &answer{
				verdict: "created volume " + v.Name,
				lines: []string{
					sh.line(),
					fmt.Sprintf(`create_sandbox with {"volumes": %s} mounts it`, quote(v.Name+":"+sandbox.Workspace+"/data")),
				},
				structured: sh,
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
}

func (c *call) volumeShape(ctx context.Context, v *engine.VolumeInfo) volumeShape {
	out := volumeShape{ID: string(v.ID), Name: v.Name, SizeMB: v.SizeMB, MountedBy: make([]string, 0, len(v.Users)), CreatedAt: timeText(v.CreatedAt)}
	if v.UsedBytes >= 0 {
		out.UsedBytes = &v.UsedBytes
	}
	for i, id := range v.Users {
		name := string(id)
		if i < mostNamed { // the rest by their ids, which cost nothing to know
			if s, err := c.engine.Get(ctx, c.Caller, name); err == nil {
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
		line += " · holds " + bytesText(*v.UsedBytes)
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

func listVolumes() tool {
	return tool{
		name: "list_volumes", title: "List volumes", readOnly: true, idempotent: true,
		about:   "List your volumes with what they hold and which sandboxes mount them.",
		example: `{}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			all, err := c.engine.Volumes(ctx, c.Caller)
			if err != nil {
				return nil, err
			}
			out := volumeList{Volumes: make([]volumeShape, 0, len(all))}
			ans := &answer{verdict: counted(len(all), "volume", "volumes")}
			for i := range all {
				sh := c.volumeShape(ctx, &all[i])
				out.Volumes = append(out.Volumes, sh)
				ans.lines = append(ans.lines, sh.line())
			}
			ans.structured = out
			return ans, nil
		},
	}
}

func deleteVolume() tool {
	return tool{
		name: "delete_volume", title: "Delete a volume", destructive: true,
		about: "Delete a volume for ever, with all that is in it. It is refused while a sandbox mounts it.",
		params: []param{
			{name: "volume", kind: text, required: true, about: "Its name or id.", aliases: []string{"name", "id", "volume_name", "volume_id"}},
		},
		example: `{"volume": "data"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			name := c.args.text("volume")
			if err := c.args.err(); err != nil {
				return nil, err
			}
			if err := c.engine.DeleteVolume(ctx, c.Caller, name); err != nil {
				return nil, err
			}
			return &answer{verdict: "deleted volume " + name + " with all that was in it"}, nil
		},
	}
}
