// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/api/filelink"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
)

func getFileURL() toolset.Tool {
	return toolset.Tool{
		Name: "get_file_url", Title: "Get a link to a file", ReadOnly: true,
		About: "Get an HTTP link to a file of a sandbox, for the user or for curl: whoever has it can read that file until it expires, without a token.",
		Params: []toolset.Param{
			toolset.PathParam("The file."),
			paramSandbox(),
			{Name: "expires_minutes", Kind: toolset.Number, Min: filelink.MinLife.Minutes(), Max: filelink.MaxLife.Minutes(), About: "1 to 10080, default 60.", Aliases: []string{"expires", "ttl_minutes"}},
		},
		Example: `{"path": "/artifacts/report.pdf"}`,
		Run:     linkFile,
	}
}

func linkFile(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	path, life := a.Text("path"), a.Number("expires_minutes", filelink.DefaultLife.Minutes())
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	// Opened, and not only looked at: a link of the sandbox's may lead to the file.
	info, body, err := c.Engine.ReadFile(ctx, c.Caller, ref, path, agent.ReadOptions{Length: 1})
	if err != nil {
		return nil, c.PathError(ctx, ref, path, err)
	}
	_ = body.Close() // nothing was read
	s, err := c.Engine.Get(ctx, c.Caller, ref)
	if err != nil {
		return nil, err
	}
	address, until := c.FileURL(s, info.Path, time.Duration(life*float64(time.Minute)))
	if address == "" {
		return nil, fault.New(fault.Unsupported, "this server makes no links to files").
			WithRemedy("read_file shows the file %s", toolset.PrintablePath(info.Path))
	}
	out := &toolset.Answer{
		Verdict: fmt.Sprintf("%s · %s, %s · sandbox %s", toolset.PrintablePath(info.Path), toolset.MediaOf(info.Path), toolset.BytesText(info.Size), ref),
		Lines:   []string{address, "good until " + toolset.TimeText(until) + " for whoever has it, and it ends with the sandbox"},
	}
	out.Links = append(out.Links, toolset.ResourceLink(s.ID, &info))
	return out, nil
}
