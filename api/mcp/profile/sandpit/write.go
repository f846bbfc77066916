// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"sandpit.dev/agent"
	"sandpit.dev/api/mcp/toolset"
)

func writeFile() toolset.Tool {
	return toolset.Tool{
		Name: "write_file", Title: "Write a file", Destructive: true, Idempotent: true,
		About: "Write a whole file in a sandbox, at most 8 MiB, replacing what was there. Missing directories are made. Reads see the old file or the new one, never half.",
		Params: []toolset.Param{
			toolset.PathParam("The file."),
			{Name: "content", Kind: toolset.Text, Required: true, About: "The whole content.", Aliases: []string{"contents", "text", "file_text", "data"}},
			paramSandbox(),
			{Name: "encoding", Kind: toolset.Text, Enum: []string{"utf-8", "base64"}, About: "Of content, default utf-8; base64 for binary files."},
			{Name: "mode", Kind: toolset.Text, About: "Permissions in octal, like 755. Default: those of the old file, else 644."},
		},
		Example: `{"path": "hello.py", "content": "print('hello')\n"}`,
		Run:     write,
	}
}

func write(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	path, content, mode := a.Text("path"), a.Text("content"), a.Text("mode")
	o := agent.WriteOptions{MakeParents: true}
	if mode != "" {
		n, err := strconv.ParseUint(strings.TrimPrefix(mode, "0o"), 8, 32)
		if err != nil || n > 0o777 || n == 0 {
			a.Add("mode", "%q is not a valid octal permission between 1 and 777", toolset.Clip(mode))
		}
		o.Mode = fs.FileMode(n)
	}
	if a.Text("encoding") == "base64" {
		raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content), ""))
		if err != nil {
			a.Add("content", "is not base64: %v", err)
		}
		content = string(raw)
	}
	if len(content) > toolset.MaxWrite {
		a.Add("content", "has %d bytes, more than %d; write it in parts with run_command, or upload it by REST: PUT /v1/sandboxes/{id}/files/{path}", len(content), toolset.MaxWrite)
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, true)
	if err != nil {
		return nil, err
	}
	o.Size = int64(len(content))
	info, created, err := c.Engine.WriteFile(ctx, c.Caller, ref, path, strings.NewReader(content), o)
	if err != nil {
		return nil, c.PathError(ctx, ref, path, err)
	}
	what := "replaced"
	if created {
		what = "created"
	}
	out := &toolset.Answer{Verdict: fmt.Sprintf("%s %s (%d bytes, mode %o) · sandbox %s", what, toolset.PrintablePath(info.Path), info.Size, info.Mode.Perm(), ref)}
	if s, err := c.Engine.Get(ctx, c.Caller, ref); err == nil { // else it has been deleted since
		out.Links = append(out.Links, toolset.ResourceLink(s.ID, &info))
	}
	return out, nil
}
