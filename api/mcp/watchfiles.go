// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// mostWatched bounds the changes of an answer.
const mostWatched = 500

func watchFiles() tool {
	return tool{
		name: "watch_files", title: "Wait for changes of files", readOnly: true,
		about: "Wait until something changes in a directory of a sandbox, and list what did: created, modified, deleted, renamed. Changes before the call are not told.",
		params: []param{
			paramSandbox(),
			{name: "path", kind: text, about: "The directory, default /workspace.", aliases: []string{"dir", "directory"}},
			{name: "recursive", kind: boolean, about: "With all that is below. Default true."},
			{name: "wait_seconds", kind: number, min: 0.1, max: mostWait.Seconds(), about: "Wait so long for the first change, default 30.", aliases: []string{"wait"}},
		},
		example: `{"path": "/workspace/src"}`,
		run:     watchDir,
	}
}

// errSeen ends a watch that has seen enough.
var errSeen = errors.New("seen")

func watchDir(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	r := engine.WatchRequest{Path: orElse(a.text("path"), sandbox.Workspace), Recursive: a.bool("recursive", true)}
	wait := seconds(a.number("wait_seconds", longestWait.Seconds()))
	if err := a.err(); err != nil {
		return nil, err
	}
	ref, err := c.place(ctx, false)
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
	end, err := c.engine.WatchFiles(here, c.Caller, ref, r, func(events []sandbox.FileEvent) error {
		if !begun {
			begun = true
			c.progress.say("watching " + printablePath(clip(r.Path)))
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
		return nil, c.pathError(ctx, ref, r.Path, err)
	}
	ans := &answer{verdict: fmt.Sprintf("%s in %s · sandbox %s", counted(n, "change", "changes"), printablePath(clip(r.Path)), ref)}
	if n == 0 && dropped == 0 && end.Reason == "" {
		ans.verdict = fmt.Sprintf("nothing changed in %s for %s · sandbox %s", printablePath(clip(r.Path)), took(wait), ref)
	}
	if end.Reason != "" {
		ans.lines = append(ans.lines, "the watch ended: "+oneLineOf(end.Detail))
	}
	if dropped > 0 {
		ans.notes = append(ans.notes, fmt.Sprintf("at least %d more changes came too quickly to be told; list_files shows how it is now", dropped))
	}
	if n > mostWatched {
		ans.notes = append(ans.notes, fmt.Sprintf("only the first %d are listed", mostWatched))
	}
	if b.Len() > 0 {
		ans.sections = []section{{"changes", b.String()}}
	}
	return ans, nil
}

// changeLine is a change in one line.
func changeLine(e sandbox.FileEvent) string {
	line := string(e.Type) + " " + printablePath(e.Path)
	if e.From != "" {
		line += " from " + printablePath(e.From)
	}
	if e.IsDir {
		line += " (a directory)"
	}
	return line
}
