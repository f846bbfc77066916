// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// mostWatched bounds the changes of an answer.
const mostWatched = 500

func watchFiles() toolset.Tool {
	return toolset.Tool{
		Name: "watch_files", Title: "Wait for changes of files", ReadOnly: true,
		About: "Wait until something changes in a directory of a sandbox, and list what did: created, modified, deleted, renamed. Changes before the call are not told.",
		Params: []toolset.Param{
			paramSandbox(),
			{Name: "path", Kind: toolset.Text, About: "The directory, default /workspace.", Aliases: []string{"dir", "directory"}},
			{Name: "recursive", Kind: toolset.Boolean, About: "With all that is below. Default true."},
			{Name: "wait_seconds", Kind: toolset.Number, Min: 0.1, Max: toolset.MostWait.Seconds(), About: "Wait so long for the first change, default 30.", Aliases: []string{"wait"}},
		},
		Example: `{"path": "/workspace/src"}`,
		Run:     watchDir,
	}
}

// errSeen ends a watch that has seen enough.
var errSeen = errors.New("seen")

func watchDir(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	r := engine.WatchRequest{Path: orElse(a.Text("path"), sandbox.Workspace), Recursive: a.Bool("recursive", true)}
	wait := toolset.Seconds(a.Number("wait_seconds", longestWait.Seconds()))
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	here, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	// What comes with the first change, or a moment after it, is one answer.
	quiet := time.AfterFunc(time.Hour, cancel)
	quiet.Stop()
	defer quiet.Stop()
	var b strings.Builder
	n, dropped, begun := 0, 0, false
	end, err := c.Engine.WatchFiles(here, c.Caller, ref, r, func(events []sandbox.FileEvent) error {
		if !begun {
			begun = true
			c.Progress.Say("watching " + toolset.PrintablePath(toolset.Clip(r.Path)))
		}
		for _, e := range events {
			if e.Type == sandbox.FileDropped {
				dropped += e.Dropped
				continue
			}
			if n++; n <= mostWatched {
				b.WriteString(changeLine(e) + "\n")
			}
		}
		if n >= mostWatched {
			return errSeen
		}
		if n+dropped > 0 {
			quiet.Reset(settled)
		}
		return nil
	})
	switch {
	case err == nil || errors.Is(err, errSeen):
	case ctx.Err() != nil || here.Err() == nil:
		return nil, c.PathError(ctx, ref, r.Path, err)
	}
	ans := &toolset.Answer{Verdict: fmt.Sprintf("%s in %s · sandbox %s", toolset.Counted(n, "change", "changes"), toolset.PrintablePath(toolset.Clip(r.Path)), ref)}
	if n == 0 && dropped == 0 && end.Reason == "" {
		ans.Verdict = fmt.Sprintf("nothing changed in %s for %s · sandbox %s", toolset.PrintablePath(toolset.Clip(r.Path)), toolset.Took(wait), ref)
	}
	if end.Reason != "" {
		ans.Lines = append(ans.Lines, "the watch ended: "+oneLineOf(end.Detail))
	}
	if dropped > 0 {
		ans.Notes = append(ans.Notes, fmt.Sprintf("at least %d more changes came too quickly to be told; list_files shows how it is now", dropped))
	}
	if n > mostWatched {
		ans.Notes = append(ans.Notes, fmt.Sprintf("only the first %d are listed", mostWatched))
	}
	if b.Len() > 0 {
		ans.Sections = []toolset.Section{{Title: "changes", Body: b.String()}}
	}
	return ans, nil
}

// changeLine is a change in one line.
func changeLine(e sandbox.FileEvent) string {
	line := string(e.Type) + " " + toolset.PrintablePath(e.Path)
	if e.From != "" {
		line += " from " + toolset.PrintablePath(e.From)
	}
	if e.IsDir {
		line += " (a directory)"
	}
	return line
}
