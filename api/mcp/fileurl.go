// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/api/filelink"
	"sandpit.dev/fault"
)

func getFileURL() tool {
	return tool{
		name: "get_file_url", title: "Get a link to a file", readOnly: true,
		about: "Get an HTTP link to a file of a sandbox, for the user or for curl: whoever has it can read that file until it expires, without a token.",
		params: []param{
			paramPath("The file."),
			paramSandbox(),
			{name: "expires_minutes", kind: number, min: filelink.MinLife.Minutes(), max: filelink.MaxLife.Minutes(), about: "1 to 10080, default 60.", aliases: []string{"expires", "ttl_minutes"}},
		},
		example: `{"path": "/artifacts/report.pdf"}`,
		run:     linkFile,
	}
}

// paramPath is the argument that says which file.
func paramPath(about string) param {
	return param{name: "path", kind: text, required: true, about: about + " Absolute, or relative to /workspace.", aliases: []string{"file_path", "file", "filename"}}
}

func linkFile(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	path, life := a.text("path"), a.number("expires_minutes", filelink.DefaultLife.Minutes())
	if err := a.err(); err != nil {
		return nil, err
	}
	ref, err := c.place(ctx, false)
	if err != nil {
		return nil, err
	}
	// Opened, and not only looked at: a link of the sandbox's may lead to the file.
	info, body, err := c.engine.ReadFile(ctx, c.Caller, ref, path, agent.ReadOptions{Length: 1})
	if err != nil {
		return nil, c.pathError(ctx, ref, path, err)
	}
	_ = body.Close() // nothing was read
	s, err := c.engine.Get(ctx, c.Caller, ref)
	if err != nil {
		return nil, err
	}
	address, until := c.fileURL(s, info.Path, time.Duration(life*float64(time.Minute)))
	if address == "" {
		return nil, fault.New(fault.Unsupported, "this server makes no links to files").
			WithRemedy("read_file shows the file %s", printablePath(info.Path))
	}
	out := &answer{
		verdict: fmt.Sprintf("%s · %s, %s · sandbox %s", printablePath(info.Path), mediaOf(info.Path), bytesText(info.Size), ref),
		lines:   []string{address, "good until " + timeText(until) + " for whoever has it, and it ends with the sandbox"},
	}
	out.links = append(out.links, resourceLink(s.ID, &info))
	return out, nil
}
