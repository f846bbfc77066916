// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"sandpit.dev/agent"
)

// maxWrite bounds a file written by a tool; the message around it is bounded too.
const maxWrite = 8 << 20

func writeFile() tool {
	return tool{
		name: "write_file", title: "Write a file", destructive: true, idempotent: true,
		about: "Write a whole file in a sandbox, at most 8 MiB, replacing what was there. Missing directories are made. Reads see the old file or the new one, never half.",
		params: []param{
			paramPath("The file."),
			{name: "content", kind: text, required: true, about: "The whole content.", aliases: []string{"contents", "text", "file_text", "data"}},
			paramSandbox(),
			{name: "encoding", kind: text, enum: []string{"utf-8", "base64"}, about: "Of content, default utf-8; base64 for binary files."},
			{name: "mode", kind: text, about: "Permissions in octal, like 755. Default: those of the old file, else 644."},
		},
		example: `{"path": "hello.py", "content": "print('hello')\n"}`,
		run:     write,
	}
}

func write(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	path, content, mode := a.text("path"), a.text("content"), a.text("mode")
	o := agent.WriteOptions{MakeParents: true}
	if mode != "" {
		n, err := strconv.ParseUint(strings.TrimPrefix(mode, "0o"), 8, 32)
		if err != nil || n > 0o777 || n == 0 {
			a.add("mode", "%q is not a valid octal permission between 1 and 777", clip(mode))
		}
		o.Mode = fs.FileMode(n)
	}
	if a.text("encoding") == "base64" {
		raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content), ""))
		if err != nil {
			a.add("content", "is not base64: %v", err)
		}
		content = string(raw)
	}
	if len(content) > maxWrite {
		a.add("content", "has %d bytes, more than %d; write it in parts with run_command, or upload it by REST: PUT /v1/sandboxes/{id}/files/{path}", len(content), maxWrite)
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	ref, err := c.place(ctx, true)
	if err != nil {
		return nil, err
	}
	o.Size = int64(len(content))
	info, created, err := c.engine.WriteFile(ctx, c.Caller, ref, path, strings.NewReader(content), o)
	if err != nil {
		return nil, c.pathError(ctx, ref, path, err)
	}
	what := "replaced"
	if created {
		what = "created"
	}
	out := &answer{verdict: fmt.Sprintf("%s %s (%d bytes, mode %o) · sandbox %s", what, printablePath(info.Path), info.Size, info.Mode.Perm(), ref)}
	if s, err := c.engine.Get(ctx, c.Caller, ref); err == nil { // else it has been deleted since
		out.links = append(out.links, resourceLink(s.ID, &info))
	}
	return out, nil
}
